/// Sort quantization where the host cannot look at values without waiting for them.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/codecs/sort_quantization_code.h"

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

}  // namespace pipewright
