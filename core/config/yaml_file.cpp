// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_file.h"

#include "core/config/value.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLargestYamlFile = std::uint64_t{2} << 20;

}  // namespace

/// A missing or oversized file, or one that is not a regular file, is an error in its name
/// (Experiment). A regular file that cannot be read is an error of the disk or of its permissions
/// (Data).
std::string read_yaml_file(const std::filesystem::path& path) {
  try {
    return read_file(path, kLargestYamlFile);
  } catch (const Error& error) {
    std::error_code none;
    const auto status = std::filesystem::status(path, none);
    const bool readable = std::filesystem::is_regular_file(status) &&
                          std::filesystem::file_size(path, none) <= kLargestYamlFile;
    throw Error(readable ? ErrorKind::Data : ErrorKind::Experiment, error.message(), path.string());
  }
}

Value load_yaml(const std::filesystem::path& path, Problems& faults) {
  return parse_yaml(read_yaml_file(path), path.string(), faults);
}

Value load_yaml(const std::filesystem::path& path) {
  return parse_yaml(read_yaml_file(path), path.string());
}

}  // namespace pipewright
