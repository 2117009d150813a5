/// Lists kept as text, one entry per line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The lines that are not blank, without spaces and carriage returns around them.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace pipewright
