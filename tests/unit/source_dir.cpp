// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/source_dir.h"

namespace pipewright {

std::filesystem::path source_dir() {
  return PIPEWRIGHT_SOURCE_DIR;
}

}  // namespace pipewright
