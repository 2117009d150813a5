// SPDX-License-Identifier: Apache-2.0
/// CRC-32C, the cyclic redundancy check with Castagnoli's polynomial (RFC 3720, appendix B.4).
#pragma once

#include <cstdint>
#include <string_view>

namespace pipewright {

/// The CRC-32C of the bytes.
std::uint32_t crc32c(std::string_view bytes);

/// The CRC-32C as TFRecord files store it: rotated right by 15 bits, plus a constant, so that the
/// check of bytes which hold checks themselves is no special number.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace pipewright
