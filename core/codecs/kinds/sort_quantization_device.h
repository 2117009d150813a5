// SPDX-License-Identifier: Apache-2.0
/// Sort quantization on devices whose memory the host cannot read without waiting.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// Encodes x (float32, contiguous) into `payload`, settings.payload_bytes() bytes on the same
/// device. With exact thresholds the bytes are those that a CPU writes. Where a CPU would send raw
/// (non-finite values, a range that is too wide), the payload decodes to non-finite values. The
/// host does not wait.
void encode_on_device(const SortQuantization& settings, const at::Tensor& x,
                      const at::Tensor& payload);

/// Decodes `payload`, settings.payload_bytes() bytes, into x (float32, contiguous) on the same
/// device. The payload's header is not read.
void decode_on_device(const SortQuantization& settings, const at::Tensor& payload,
                      const at::Tensor& x);

/// Writes the map that take_zeros_out() (zero_map.h) writes: zero_map_bytes() bytes on x's device.
/// `others` is the number of nonzero values.
void write_zero_map(const at::Tensor& x, std::int64_t others, const at::Tensor& map);
/// Reads a map of n values: [n], kBool, true where the value is not 0.
at::Tensor nonzeros_of(const at::Tensor& map, std::int64_t n);

}  // namespace pipewright
