// SPDX-License-Identifier: Apache-2.0
/// Resizes 8-bit images with a triangle filter that widens with the reduction ("bilinear with
/// antialiasing"), bit for bit like Pillow's Image.resize(size, BILINEAR) and so like torchvision's
/// Resize of Pillow images.
///
/// With m input and n output pixels, output pixel i is centred at (i + ½)·m/n and weights the input
/// pixels around it by 1 − |distance| / r with r = max(m/n, 1). The weights are normalised to sum 1
/// and rounded to 22 binary places. Rows are resized first and rounded to 8 bits, then columns.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/images/pixels.h"

namespace pipewright {

/// A part of an image, in pixels.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// The weights of the input pixels for a range of output pixels along one dimension.
class Taps {
 public:
  /// Computes them for output pixels [first, first + count) out of `to`, from `from` input pixels.
  Taps(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t count);

  struct Span {
    std::int64_t first;           ///< first input pixel
    std::int64_t count;           ///< number of input pixels, ≥ 1
    const std::int32_t* weights;  ///< `count` weights, in units of 2^-22
  };
  Span operator[](std::int64_t output) const;
  std::int64_t size() const { return static_cast<std::int64_t>(first_.size()); }
  bool copies() const { return copies_; }  ///< whether the size stays the same

 private:
  std::int64_t most_;  ///< weights stored for each output pixel
  bool copies_;
  std::vector<std::int64_t> first_, count_;
  std::vector<std::int32_t> weights_;
};

/// Resizes channels from one size to another and computes only a window of the result. All sizes
/// must be positive.
class Resize {
 public:
  Resize(std::int64_t from_height, std::int64_t from_width, std::int64_t to_height,
         std::int64_t to_width, Box window);

  /// Resizes one channel; writes window height × window width pixels.
  void apply(const Channel& in, std::uint8_t* out) const;

 private:
  Taps rows_, columns_;
};

}  // namespace pipewright
