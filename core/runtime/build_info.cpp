// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/build_info.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <pipewright_commit.h>  // made by cmake/commit.cmake

#include "core/base/error.h"
#include "core/base/version.h"

namespace pipewright {

/// A program may run with the LibTorch of another machine than the one that it was built on, so the
/// dynamic loader is asked, which has loaded it.
std::filesystem::path loaded_torch_root() {
  Dl_info library{};
  const auto* const function = reinterpret_cast<const void*>(&at::show_config);
  PIPEWRIGHT_CHECK(dladdr(function, &library) != 0, "LibTorch lies in no library");
  return std::filesystem::weakly_canonical(library.dli_fname).parent_path().parent_path();
}

const BuildInfo& build_info() {
  static const BuildInfo info{PIPEWRIGHT_VERSION, PIPEWRIGHT_COMMIT, PIPEWRIGHT_TORCH_VERSION,
                              PIPEWRIGHT_BUILD, "g++ " __VERSION__};
  return info;
}

}  // namespace pipewright
