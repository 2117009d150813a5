/// 8-bit pixels where they lie, and how they become the floats that a model sees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// One channel of an image in memory that somebody else owns: pixel (y, x) is
/// first[y · to_next_row + x · to_next_column], so planes and interleaved pixels look alike.
struct Channel {
  const std::uint8_t* first = nullptr;
  std::int64_t height = 0, width = 0;
  std::int64_t to_next_row = 0, to_next_column = 1;

  /// The part of this size whose upper left pixel is (top, left); it must lie inside.
  Channel part(std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns) const {
    return {first + top * to_next_row + left * to_next_column, rows, columns, to_next_row,
            to_next_column};
  }
};

/// The channels of an image of 8-bit planes, one after another.
std::vector<Channel> planes(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height,
                            std::int64_t width);

/// For each channel, what each of the 256 pixel values becomes.
using PixelTable = std::vector<std::array<float, 256>>;

/// (p / 255 − mean[c]) / deviation[c], in float32 and in this order: torchvision's bits.
PixelTable normalised(std::span<const double> mean, std::span<const double> deviation);

/// Which part of an image is seen: its upper left corner, which may lie outside, and mirrored or
/// not.
struct View {
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
};

/// As many floats as the channel has pixels: those that the view shows, through the table; black
/// outside of the channel. Mirrored means that the part seen is, left to right.
void write_channel(const Channel& channel, View view, const std::array<float, 256>& table,
                   float* out);

}  // namespace pipewright
