// SPDX-License-Identifier: Apache-2.0
#include "core/system/given_files.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace pipewright {
namespace {

std::vector<std::filesystem::path>& given_files() {
  static std::vector<std::filesystem::path> files;
  return files;
}

}  // namespace

void remember_given_file(const std::filesystem::path& file) {
  std::error_code none;
  given_files().push_back(std::filesystem::absolute(file, none));
}

bool is_given_file(const std::filesystem::path& file) {
  return std::ranges::any_of(given_files(), [&](const std::filesystem::path& given) {
    std::error_code none;
    return std::filesystem::equivalent(given, file, none);
  });
}

void refuse_given_file(const std::filesystem::path& file) {
  if (is_given_file(file))
    throw Error(ErrorKind::Experiment,
                "is a file that this command reads, so it is not replaced; give another name",
                file.string());
}

}  // namespace pipewright
