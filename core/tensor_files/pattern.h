// SPDX-License-Identifier: Apache-2.0
/// Regular expressions over UTF-8 text with Unicode character classes (PCRE2).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pipewright {

/// A compiled regular expression; several threads may call const members at once. An invalid
/// expression is an internal error. Bytes that are not UTF-8 match nothing.
class Pattern {
 public:
  explicit Pattern(std::string_view expression);

  /// Calls `visit` for every match from left to right. An empty match is an internal error.
  void for_each(std::string_view text,
                const std::function<void(std::string_view match)>& visit) const;
  bool is_in(std::string_view text) const;
  /// Returns the text with every match replaced. In `replacement`, "$1" is the first group and
  /// "\L$1" the first group in lower case.
  std::string replaced(std::string_view text, const std::string& replacement) const;

 private:
  std::shared_ptr<void> code_;  // pcre2_code_8
};

/// Converts to lower case by Unicode's one-to-one mapping, independent of the locale.
std::string lower_case(std::string_view text);

}  // namespace pipewright
