/// The module of CUDA kernels: loaded when first asked for, since programs are built, and run,
/// without.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// Queues encoding x to payload (see sort_quantization_device.h) on the current stream. False, and
/// nothing done, where there is no module, or it has no kernels for these settings or this device.
bool encode_by_kernels(const SortQuantization& settings, const at::Tensor& x,
                       const at::Tensor& payload);
/// The same for decoding.
bool decode_by_kernels(const SortQuantization& settings, const at::Tensor& payload,
                       const at::Tensor& x);

}  // namespace pipewright
