/// small_float.h with LibTorch's operations, for devices whose memory the host cannot write to.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/small_float.h"

namespace pipewright {

/// x: float32 → codes, kInt.
at::Tensor small_codes(const at::Tensor& x, SmallFloat format);
/// codes: kInt, of the format's bits → float32.
at::Tensor small_values(const at::Tensor& codes, SmallFloat format);

}  // namespace pipewright
