// SPDX-License-Identifier: Apache-2.0
/// Versions, compiler and build type that this program was built with, and where LibTorch is.
#pragma once

#include <filesystem>

namespace pipewright {

struct BuildInfo {
  const char* version;
  const char* torch_version;
  const char* build_type;
  const char* compiler;
  std::filesystem::path torch_root;  ///< folder whose `lib` this process has loaded LibTorch from
};
const BuildInfo& build_info();

}  // namespace pipewright
