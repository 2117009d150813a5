#include "datasets/formats/lines.h"

#include "core/base/text.h"

namespace pipewright {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (const std::string_view entry = trimmed(line); !entry.empty()) lines.emplace_back(entry);
  return lines;
}

}  // namespace pipewright
