/// Resizing 8-bit images with a triangle filter that widens with the reduction ("bilinear with
/// antialiasing"): what Pillow's Image.resize(size, BILINEAR) does, and so torchvision's Resize of
/// Pillow images, bit for bit.
///
/// Output pixel i of n, made of m input pixels, is centred at (i + ½)·m/n and weighs the pixels
/// around it by 1 − |distance| / r with r = max(m/n, 1); the weights sum to 1 and are rounded to
/// 22 binary places. Rows are made first and rounded to 8 bits, then columns of them.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/images/pixels.h"

namespace pipewright {

/// A part of an image, in pixels.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// How each of some output pixels of one dimension is made of consecutive input pixels.
class Taps {
 public:
  /// Of the output pixels [first, first + count) out of `to`, made of `from` input pixels.
  Taps(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t count);

  struct Span {
    std::int64_t first;           ///< input pixel
    std::int64_t count;           ///< ≥ 1
    const std::int32_t* weights;  ///< `count` of them, in units of 2^-22
  };
  Span operator[](std::int64_t output) const;
  std::int64_t size() const { return static_cast<std::int64_t>(first_.size()); }
  bool copies() const { return copies_; }  ///< Nothing is scaled.

 private:
  std::int64_t most_;  ///< weights kept for each output pixel
  bool copies_;
  std::vector<std::int64_t> first_, count_;
  std::vector<std::int32_t> weights_;
};

/// Channels of one size to one other size, of which only a window is made. All sizes are > 0.
class Resize {
 public:
  Resize(std::int64_t from_height, std::int64_t from_width, std::int64_t to_height,
         std::int64_t to_width, Box window);

  /// Writes window height × window width pixels.
  void apply(const Channel& in, std::uint8_t* out) const;

 private:
  Taps rows_, columns_;
};

}  // namespace pipewright
