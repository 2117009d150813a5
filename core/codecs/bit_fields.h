/// Codes of 1 to 16 bits side by side in memory: code i at bits [i·b, (i+1)·b), least bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/codecs/bits.h"  // packed_bytes(): of n codes

namespace pipewright {

/// into: packed_bytes(). Every code is below 2^bits; bits ≤ 8, or ≤ 16 for the wider ones.
void pack_bits(std::span<const std::uint8_t> codes, int bits, std::span<std::byte> into);
void pack_bits(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into);
/// packed: packed_bytes() of the codes.
void unpack_bits(std::span<const std::byte> packed, int bits, std::span<std::uint8_t> codes);
void unpack_bits(std::span<const std::byte> packed, int bits, std::span<std::uint16_t> codes);

}  // namespace pipewright
