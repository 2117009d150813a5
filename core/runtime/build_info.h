// SPDX-License-Identifier: Apache-2.0
/// Versions, compiler and build type that this program was built with, and where LibTorch is.
#pragma once

#include <filesystem>

namespace pipewright {

struct BuildInfo {
  const char* version;
  const char* commit;  ///< twelve digits, and "-dirty" where sources were changed; "" if not known
  const char* torch_version;
  const char* build_type;
  const char* compiler;
};
const BuildInfo& build_info();

/// The folder whose `lib` this process has loaded LibTorch from.
std::filesystem::path loaded_torch_root();

}  // namespace pipewright
