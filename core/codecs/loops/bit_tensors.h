// SPDX-License-Identifier: Apache-2.0
/// The packing of bits.h with LibTorch's operators, for devices whose memory the host cannot write.
/// The host does not wait.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

/// Packs codes [n], kInt, each in [0, 2^bits), into [packed_bytes(n, bits)], kByte.
at::Tensor packed(const at::Tensor& codes, int bits);
/// Unpacks [packed_bytes(n, bits)], kByte, into [n], kInt.
at::Tensor unpacked(const at::Tensor& bytes, std::int64_t n, int bits);

}  // namespace pipewright
