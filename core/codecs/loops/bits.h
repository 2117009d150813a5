/// Fields of b bits, one after another, little-endian: value i has bits [i·b, (i+1)·b) of the
/// bytes, and what is left of the last byte is 0. Without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

inline constexpr int kMostBits = 16;

/// Bytes of n fields.
constexpr std::int64_t packed_bytes(std::int64_t n, int bits) {
  return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/// codes: each below 2^bits; bits: 1 to 16, of narrow codes to 8; into: packed_bytes(codes.size(),
/// bits) bytes.
void pack(std::span<const std::uint8_t> codes, int bits, std::span<std::byte> into);
void pack(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into);
/// from: packed_bytes(codes.size(), bits) bytes.
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint8_t> codes);
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint16_t> codes);

/// Codes that come in pieces of any length become bytes in whole chunks, so that what is made of a
/// tensor stays in the first-level cache until it is packed.
class BitWriter {
 public:
  static constexpr std::size_t kChunk = 2048;  ///< codes; whole bytes whatever their bits

  BitWriter(std::span<std::byte> into, int bits) : into_(into), bits_(bits) {}
  /// Calls fill(first, codes) for pieces of the next n values; first counts from 0.
  template <class Fill>
  void write(std::size_t n, const Fill& fill) {
    for (std::size_t first = 0; first < n;) {
      const std::size_t piece = n - first < kChunk - filled_ ? n - first : kChunk - filled_;
      fill(first, std::span(codes_ + filled_, piece));
      filled_ += piece;
      first += piece;
      if (filled_ == kChunk) flush();
    }
  }
  /// After the last write.
  void flush();

 private:
  std::span<std::byte> into_;
  int bits_;
  std::size_t filled_ = 0;
  std::uint16_t codes_[kChunk];
};

/// The way back.
class BitReader {
 public:
  /// from: packed_bytes of all values that will be read.
  BitReader(std::span<const std::byte> from, int bits) : from_(from), bits_(bits) {}
  /// Calls take(first, codes) for pieces of the next n values.
  template <class Take>
  void read(std::size_t n, const Take& take) {
    for (std::size_t first = 0; first < n;) {
      if (at_ == held_) fetch();
      const std::size_t piece = n - first < held_ - at_ ? n - first : held_ - at_;
      take(first, std::span<const std::uint16_t>(codes_ + at_, piece));
      at_ += piece;
      first += piece;
    }
  }

 private:
  void fetch();

  std::span<const std::byte> from_;
  int bits_;
  std::size_t at_ = 0, held_ = 0;
  std::uint16_t codes_[BitWriter::kChunk];
};

}  // namespace pipewright
