// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Logging.h>

#include <cstdlib>
#include <string>

#include "core/runtime/devices/allocation.h"
#include "tools/start/libtorch.h"

namespace pipewright {

void need_libtorch() {}

void prepare_libtorch() {
  ::unsetenv(kStarted);
  keep_freed_memory();
  c10::SetStackTraceFetcher([] { return std::string(); });  // stack traces are never shown
}

}  // namespace pipewright
