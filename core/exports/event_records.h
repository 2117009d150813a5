// SPDX-License-Identifier: Apache-2.0
/// The records of TensorBoard's event files. A file is a sequence of them (TFRecord framing):
///
///   [length: uint64 | masked CRC-32C of length | data | masked CRC-32C of data], little endian
///
/// and data is a protocol-buffer message of which we write these fields:
///
///   Event    1 wall_time: double   2 step: int64   3 file_version: string   5 summary: Summary
///   Summary  1 value: Value, repeated
///   Value    1 tag: string   2 simple_value: float
///
/// The first record of a file has the file_version and no summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pipewright {

/// A scalar: a number under the name by which TensorBoard knows its curve.
struct TaggedValue {
  std::string tag;   ///< "loss/train": what stands before the first slash groups curves
  double value = 0;  ///< rounded to float32 in the file
};

/// The record that a file begins with. `wall_time`: seconds since 1970.
std::string version_record(double wall_time);
/// A record of numbers that belong to one step, an epoch or a mini-batch.
std::string event_record(double wall_time, std::int64_t step, std::span<const TaggedValue> values);

/// Where the numbers of an event belong.
struct EventPlace {
  std::int64_t step = 0;
  std::string tag;  ///< of its first number; "" in the first record of a file
};

/// The bytes that the undamaged records at the beginning take for which `keeps` holds, without
/// those behind the first record that is damaged, incomplete or not kept.
std::size_t kept_bytes(std::string_view file, const std::function<bool(const EventPlace&)>& keeps);

/// The CRC-32C of the bytes, the cyclic redundancy check with Castagnoli's polynomial (RFC 3720,
/// appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

/// The CRC-32C as TFRecord files store it: rotated right by 15 bits, plus a constant, so that the
/// check of bytes which hold checks themselves is no special number.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace pipewright
