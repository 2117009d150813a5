// SPDX-License-Identifier: Apache-2.0
/// Versions, compiler and build type that this program was built with.
#pragma once

namespace pipewright {

struct BuildInfo {
  const char* version;
  const char* torch_version;
  const char* build_type;
  const char* torch_root;  ///< folder of LibTorch's include and lib
  const char* compiler;
};
const BuildInfo& build_info();

}  // namespace pipewright
