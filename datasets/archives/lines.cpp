// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/lines.h"

#include <algorithm>

#include "core/base/text.h"

namespace pipewright {

std::vector<std::string> entries_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view entry = trimmed(text.substr(at, end - at));
    if (!entry.empty()) lines.emplace_back(entry);
    at = end + 1;
  }
  return lines;
}

}  // namespace pipewright
