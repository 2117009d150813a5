// SPDX-License-Identifier: Apache-2.0
/// Explains syntax errors of YAML to the author of the file. Private to config.
#pragma once

#include <optional>
#include <string>

#include "core/config/yaml_source.h"

namespace pipewright {

/// Explains a message of yaml-cpp; "not YAML: " and the message itself if it is not a known one.
std::string explained_fault(const std::string& message);

/// The spelling that was probably meant, and the place to mend.
struct YamlSlip {
  Place place;
  std::string message;
};

/// The slip behind a message of yaml-cpp about this line and column (from 0): a bracket that is not
/// closed, a ':' without a space, a line indented too deep. nullopt if none of these is found.
std::optional<YamlSlip> slip_behind(const std::string& message, const YamlSource& source, int line,
                                    int column);

}  // namespace pipewright
