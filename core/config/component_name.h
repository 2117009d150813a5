/// Names that become one component of a path and cells of tables: letters of ASCII, digits, "-",
/// "_", "." and spaces, at most 100 bytes, neither "." nor "..", no space at either end.
#pragma once

#include <string>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// Records a problem at the value's place unless the text is such a name. `what` is what the option
/// is called, "name" or "sweep.points[2].label".
void check_component_name(const Value& text, const std::string& what, Problems& problems);

/// Such a name made of any text: "_" stands for each run of characters that cannot be in it,
/// with the spaces after it.
std::string component_name_of(std::string_view text);

}  // namespace pipewright
