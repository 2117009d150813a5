// SPDX-License-Identifier: Apache-2.0
#include "core/stage/precision.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace pipewright {

bool has_bfloat16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") > 0;
#elif defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

std::string precision_remark(const Precision& precision, bool on_cpu, bool instructions) {
  if (!on_cpu || instructions || precision.values != at::kBFloat16) return {};
  return "train.precision is bfloat16, for which this processor has no instructions; it takes "
         "longer than float32";
}

}  // namespace pipewright
