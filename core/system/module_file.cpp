// SPDX-License-Identifier: Apache-2.0
#include "core/system/module_file.h"

namespace pipewright {

std::filesystem::path module_file(const char* name) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& path : {folder / name, folder.parent_path() / name,
                           folder.parent_path() / "lib" / "pipewright" / name})
    if (std::filesystem::exists(path)) return path;
  return {};
}

}  // namespace pipewright
