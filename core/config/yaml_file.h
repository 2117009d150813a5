/// The text of a YAML file. Private to config.
#pragma once

#include <filesystem>
#include <string>

namespace pipewright {

/// Throws Error{Experiment} naming the file when it is missing, unreadable, no plain file or larger
/// than load_yaml() reads.
std::string read_yaml_file(const std::filesystem::path& path);

}  // namespace pipewright
