// SPDX-License-Identifier: Apache-2.0
/// Views of 8-bit pixels, and their conversion to the floats that a model receives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// A view of one channel of an image, which does not own the memory. Pixel (y, x) is first[y ·
/// to_next_row + x · to_next_column], so planes and interleaved pixels are treated alike.
struct Channel {
  const std::uint8_t* first = nullptr;
  std::int64_t height = 0, width = 0;
  std::int64_t to_next_row = 0, to_next_column = 1;

  /// The part with `rows` × `columns` pixels whose upper left one is (top, left). It must lie
  /// inside.
  Channel part(std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns) const {
    return {first + top * to_next_row + left * to_next_column, rows, columns, to_next_row,
            to_next_column};
  }
};

/// Views of the channels of an image stored as consecutive 8-bit planes.
std::vector<Channel> planes(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height,
                            std::int64_t width);

/// For each channel, the float for each of the 256 pixel values.
using PixelTable = std::vector<std::array<float, 256>>;

/// The table of (p / 255 − mean[c]) / deviation[c], computed in float32 in this order, as
/// torchvision does.
PixelTable normalised(std::span<const double> mean, std::span<const double> deviation);

/// A crop of an image with the image's own size: its upper left corner, which may lie outside, and
/// whether it is mirrored left to right.
struct View {
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
};

/// Writes the pixels of the view through the table, as many as the channel has; pixels outside the
/// channel are black.
void write_channel(const Channel& channel, View view, const std::array<float, 256>& table,
                   float* out);

}  // namespace pipewright
