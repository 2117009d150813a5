/// What coders do with the bytes of a payload, and with values that are not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace pipewright {

/// Throws Error{Data} where a payload has another number of bytes.
void check_bytes(const at::Tensor& payload, std::int64_t expected);
/// `count` float32 of a payload, from byte `first`, a multiple of 4, on: a view.
at::Tensor floats_of(const at::Tensor& payload, std::int64_t first, std::int64_t count);
/// The bytes from `first` on, of a tensor on the CPU.
std::span<std::byte> bytes_from(const at::Tensor& payload, std::int64_t first);

/// Whether x is to travel raw: it is on a CPU and has a value that is not finite.
bool goes_raw(const at::Tensor& x);
/// x / y, rounded once everywhere: by a number of the host a device multiplies with its reciprocal.
at::Tensor quotient(const at::Tensor& x, double y);
/// 0, or not a number where x has a value that is not finite: added to what a device decodes, so
/// that it does not get lost. 0-dimensional.
at::Tensor poison(const at::Tensor& x);

}  // namespace pipewright
