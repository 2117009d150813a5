// SPDX-License-Identifier: Apache-2.0
/// Component names: texts that become one component of a path and a cell of tables. They have ASCII
/// letters, digits, "-", "_", "." and spaces, at most 100 bytes, no space at either end, and are
/// neither "." nor "..".
#pragma once

#include <string>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// Records a problem at the value's place unless the text is a component name. `what` names the
/// option in the message: "name" or "sweep.points[2].label".
void check_component_name(const Value& text, const std::string& what, Problems& problems);

/// Makes a component name of any text: each run of characters that are not allowed becomes one "_",
/// with the spaces after it.
std::string component_name_of(std::string_view text);

}  // namespace pipewright
