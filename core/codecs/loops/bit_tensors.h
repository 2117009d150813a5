/// bits.h with LibTorch's operations, for devices whose memory the host cannot write to. Nothing
/// waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

/// codes: [n], kInt, each in [0, 2^bits) → [packed_bytes(n, bits)], kByte.
at::Tensor packed(const at::Tensor& codes, int bits);
/// bytes: [packed_bytes(n, bits)], kByte → [n], kInt.
at::Tensor unpacked(const at::Tensor& bytes, std::int64_t n, int bits);

}  // namespace pipewright
