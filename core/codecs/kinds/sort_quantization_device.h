/// Sort quantization where the host cannot look at values without waiting for them.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// x: float32, contiguous; payload: settings.payload_bytes(), same device. The bytes are those that
/// a CPU writes, but where it would refuse to write any (values that are not finite, a range that
/// is too wide): those decode to values that are not finite. The host waits for nothing.
void encode_on_device(const SortQuantization& settings, const at::Tensor& x,
                      const at::Tensor& payload);

/// payload: of settings.payload_bytes(); x: float32, contiguous, same device, to be written. What
/// the payload's header says is not looked at.
void decode_on_device(const SortQuantization& settings, const at::Tensor& payload,
                      const at::Tensor& x);

/// What take_zeros_out() (zero_map.h) writes. map: zero_map_bytes() of x, same device; `others`:
/// how many values are not 0.
void write_zero_map(const at::Tensor& x, std::int64_t others, const at::Tensor& map);
/// [n], kBool: where a map of n values says that they are not 0.
at::Tensor nonzeros_of(const at::Tensor& map, std::int64_t n);

}  // namespace pipewright
