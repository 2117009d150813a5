// SPDX-License-Identifier: Apache-2.0
/// Packs fields of b bits, little-endian: value i occupies bits [i·b, (i+1)·b) of the bytes, and
/// the unused bits of the last byte are 0. Without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

inline constexpr int kMostBits = 16;

/// Number of bytes that n fields take.
constexpr std::int64_t packed_bytes(std::int64_t n, int bits) {
  return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/// Packs codes, each below 2^bits, into packed_bytes(codes.size(), bits) bytes. `bits` is 1 to 16;
/// for 8-bit codes 1 to 8.
void pack(std::span<const std::uint8_t> codes, int bits, std::span<std::byte> into);
void pack(std::span<const std::uint16_t> codes, int bits, std::span<std::byte> into);
/// Unpacks packed_bytes(codes.size(), bits) bytes.
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint8_t> codes);
void unpack(std::span<const std::byte> from, int bits, std::span<std::uint16_t> codes);

/// Packs codes that come in pieces of any length. It buffers them in chunks that stay in the
/// first-level cache until they are packed.
class BitWriter {
 public:
  static constexpr std::size_t kChunk = 2048;  ///< codes, which always fill whole bytes

  BitWriter(std::span<std::byte> into, int bits) : into_(into), bits_(bits) {}
  /// Appends n values: calls fill(first, codes) for consecutive pieces; `first` starts at 0 in each
  /// call.
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
  /// Packs the buffered codes; must be called after the last write().
  void flush();

 private:
  std::span<std::byte> into_;
  int bits_;
  std::size_t filled_ = 0;
  std::uint16_t codes_[kChunk];
};

/// Unpacks codes in pieces of any length.
class BitReader {
 public:
  /// `from` has the packed_bytes() of all values that will be read.
  BitReader(std::span<const std::byte> from, int bits) : from_(from), bits_(bits) {}
  /// Reads n values: calls take(first, codes) for consecutive pieces; `first` starts at 0 in each
  /// call.
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
