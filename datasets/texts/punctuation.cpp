// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/punctuation.h"

#include <array>
#include <vector>

#include "core/base/text.h"
#include "core/tensor_files/pattern.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

/// Unicode white space that words_of() does not take for white space.
constexpr const char* kOtherSpace =
    "[\\x1c-\\x1f\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}]";

struct Rule {
  Pattern pattern;
  std::string replacement;
};

}  // namespace

std::string punctuation_split(std::string_view line) {
  static const std::array<Rule, 9> rules{{{Pattern("&quot;"), "\""},
                                          {Pattern("&amp;"), "&"},
                                          {Pattern("&lt;"), "<"},
                                          {Pattern("&gt;"), ">"},
                                          {Pattern("([{-~\\[-` -&(-+:-@/])"), " $1 "},
                                          {Pattern("([^0-9])([.,])"), "$1 $2 "},
                                          {Pattern("([.,])([^0-9])"), " $1 $2"},
                                          {Pattern("([0-9])(-)"), "$1 $2 "},
                                          {Pattern(kOtherSpace), " "}}};
  std::string text = concat(" ", line, " ");
  for (const Rule& rule : rules) text = rule.pattern.replaced(text, rule.replacement);
  const std::vector<std::string_view> words = words_of(text);
  return join(std::vector<std::string>(words.begin(), words.end()), " ");
}

}  // namespace pipewright
