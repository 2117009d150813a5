// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/build_info.h"

#include "core/base/version.h"

namespace pipewright {

const BuildInfo& build_info() {
  static const BuildInfo info{PIPEWRIGHT_VERSION, PIPEWRIGHT_TORCH_VERSION, PIPEWRIGHT_BUILD,
                              PIPEWRIGHT_TORCH_ROOT, "g++ " __VERSION__};
  return info;
}

}  // namespace pipewright
