// SPDX-License-Identifier: Apache-2.0
/// Text files that hold a list, one entry per line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Returns the lines that are not blank, without surrounding spaces and carriage returns.
std::vector<std::string> entries_of(std::string_view text);

}  // namespace pipewright
