// SPDX-License-Identifier: Apache-2.0
/// Tokenisation of text by its punctuation.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// Returns the line (valid UTF-8) with blanks around its punctuation, by the rules of NIST's
/// mteval-v13a.pl, with which BLEU is usually computed. Punctuation is every ASCII sign but the
/// apostrophe, the hyphen, and points and commas in numbers. &quot; &amp; &lt; &gt; are replaced by
/// their characters, white space between words by one blank; there is none at the ends.
std::string punctuation_split(std::string_view line);

}  // namespace pipewright
