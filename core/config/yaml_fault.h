/// Faults of syntax in words of the person who wrote the file. Private to config.
#pragma once

#include <string>

namespace pipewright {

/// What this message of yaml-cpp means; "not YAML: " and the message when nothing better is known.
std::string explained_fault(const std::string& message);

}  // namespace pipewright
