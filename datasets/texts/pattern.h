/// Regular expressions over UTF-8 text, with Unicode's classes of characters (PCRE2).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pipewright {

/// Compiled once; const members may be called from several threads at once. A wrong expression, and
/// text that is not UTF-8, are bugs: who reads a file checks it first (text_file.h).
class Pattern {
 public:
  explicit Pattern(std::string_view expression);

  /// Every match, from left to right; empty matches are not allowed.
  void for_each(std::string_view text,
                const std::function<void(std::string_view match)>& visit) const;
  /// The text with every match replaced; "$1" is the first group, "\L$1" that in lower case.
  std::string replaced(std::string_view text, const std::string& replacement) const;

 private:
  std::shared_ptr<void> code_;  // pcre2_code_8
};

/// Lower case by Unicode's one-to-one mapping, in any locale.
std::string lower_case(std::string_view text);

}  // namespace pipewright
