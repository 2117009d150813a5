// SPDX-License-Identifier: Apache-2.0
#include "core/training/processor.h"

#include <ATen/Version.h>

#include <cstdlib>

namespace pipewright {

std::string instruction_set() {
  std::string text = at::get_cpu_capability();
  for (const char* restriction : {"MKL_CBWR", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"})
    if (const char* value = std::getenv(restriction))
      text += std::string(", ") + restriction + "=" + value;
  return text;
}

}  // namespace pipewright
