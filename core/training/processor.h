// SPDX-License-Identifier: Apache-2.0
/// The processor that a training runs on. Another one may give other bits.
#pragma once

#include <string>

namespace pipewright {

/// The instruction set of LibTorch's kernels ("AVX2"), followed by environment variables that
/// restrict its libraries (", MKL_CBWR=COMPATIBLE").
std::string instruction_set();

}  // namespace pipewright
