// SPDX-License-Identifier: Apache-2.0
/// The formats of small_float.h with LibTorch's operators, for devices whose memory the host cannot
/// write.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/small_float.h"

namespace pipewright {

/// Converts float32 to codes, kInt.
at::Tensor small_codes(const at::Tensor& x, SmallFloat format);
/// Converts codes, kInt, each below 2^format.bits(), to float32.
at::Tensor small_values(const at::Tensor& codes, SmallFloat format);

}  // namespace pipewright
