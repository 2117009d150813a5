// SPDX-License-Identifier: Apache-2.0
/// The text of a YAML file. Private to config.
#pragma once

#include <filesystem>
#include <string>

namespace pipewright {

/// Reads the file. Throws Error{Experiment} naming it when it is missing, not a regular file or
/// larger than load_yaml() reads, Error{Data} when it cannot be read.
std::string read_yaml_file(const std::filesystem::path& path);

}  // namespace pipewright
