// SPDX-License-Identifier: Apache-2.0
/// The module of CUDA kernels. It is optional, so it is loaded at its first use.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// Queues the encoding of x into `payload` (see sort_quantization_device.h) on the current stream.
/// Returns false if there is no module, it has no kernels for these settings or this device, or
/// CUDA reports an error.
bool encode_by_kernels(const SortQuantization& settings, const at::Tensor& x,
                       const at::Tensor& payload);
/// Queues the decoding of `payload` into x, with the same result.
bool decode_by_kernels(const SortQuantization& settings, const at::Tensor& payload,
                       const at::Tensor& x);

}  // namespace pipewright
