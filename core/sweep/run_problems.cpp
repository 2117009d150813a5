// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/run_problems.h"

#include "core/base/text.h"

namespace pipewright {

void RunProblems::add(const Error& error, const std::string& title) {
  if (lines_.empty()) kind_ = error.kind();
  for (const std::string& line : split(error.what(), '\n')) {
    const auto [found, added] = titles_.try_emplace(line);
    if (added) lines_.push_back(line);
    found->second.push_back(title);
  }
}

void RunProblems::throw_if_any(std::size_t runs) const {
  if (lines_.empty()) return;
  std::vector<std::string> texts;
  for (const std::string& line : lines_) {
    const std::vector<std::string>& titles = titles_.at(line);
    const std::string where = titles.size() == 1 ? concat(" (run '", titles[0], "')")
                                                 : concat(" (", titles.size(), " of ", runs,
                                                          " runs, first '", titles[0], "')");
    texts.push_back(titles.size() == runs ? line : line + where);
  }
  throw Error(kind_, join(texts, "\n"));
}

}  // namespace pipewright
