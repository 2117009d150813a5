/// Words of untokenised text.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// The line of valid UTF-8 with blanks around its punctuation, by the rules of NIST's
/// mteval-v13a.pl, which BLEU is mostly computed with: signs of ASCII but the apostrophe, the
/// hyphen, and points and commas in numbers; &quot; &amp; &lt; &gt; are the characters they stand
/// for. One blank between words, for white space of every kind, none at the ends.
std::string punctuation_split(std::string_view line);

}  // namespace pipewright
