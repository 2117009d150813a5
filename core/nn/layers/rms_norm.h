// SPDX-License-Identifier: Apache-2.0
/// RMS normalisation as a part of layers.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

/// x/√(mean of x² + eps) over the last dimension (Zhang & Sennrich, 2019), times `weight` [width]
/// unless that is undefined. Computes in the format of `weight`, or in float32 where it is
/// undefined and x has fewer bits, and gives that of x.
at::Tensor rms_normalized(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace pipewright
