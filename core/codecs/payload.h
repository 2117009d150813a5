// SPDX-License-Identifier: Apache-2.0
/// Helpers of coders for the bytes of a payload and for non-finite values.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace pipewright {

/// Throws Error{Data} if the payload has not `expected` bytes.
void check_bytes(const at::Tensor& payload, std::int64_t expected);
/// A view of `count` float32 in a payload, from byte `first`, a multiple of 4.
at::Tensor floats_of(const at::Tensor& payload, std::int64_t first, std::int64_t count);
/// The values of a contiguous float32 tensor on the CPU.
std::span<float> span_of(const at::Tensor& floats);
/// The bytes from `first` on; the tensor must be on the CPU.
std::span<std::byte> bytes_from(const at::Tensor& payload, std::int64_t first);

/// Whether x must be sent raw: it is on a CPU and has a non-finite value.
bool goes_raw(const at::Tensor& x);
/// x / y with one rounding on every device. Division by a host scalar would multiply by its rounded
/// reciprocal on some devices.
at::Tensor quotient(const at::Tensor& x, double y);
/// A 0-dimensional tensor: 0, or NaN if x has a non-finite value. Added to a payload on devices
/// whose host cannot look, so that non-finite values do not disappear.
at::Tensor poison(const at::Tensor& x);

}  // namespace pipewright
