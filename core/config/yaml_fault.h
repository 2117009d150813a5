// SPDX-License-Identifier: Apache-2.0
/// Explains syntax errors of YAML to the author of the file. Private to config.
#pragma once

#include <string>

namespace pipewright {

/// Explains a message of yaml-cpp; "not YAML: " and the message itself if it is not a known one.
std::string explained_fault(const std::string& message);

}  // namespace pipewright
