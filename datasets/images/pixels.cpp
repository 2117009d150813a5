// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/pixels.h"

#include <algorithm>

namespace pipewright {

std::vector<Channel> planes(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height,
                            std::int64_t width) {
  std::vector<Channel> all;
  for (std::int64_t c = 0; c < channels; ++c)
    all.push_back({pixels + c * height * width, height, width, width, 1});
  return all;
}

PixelTable normalised(std::span<const double> mean, std::span<const double> deviation) {
  PixelTable table(mean.size());
  for (std::size_t c = 0; c < table.size(); ++c)
    for (std::size_t p = 0; p < 256; ++p)
      table[c][p] = (static_cast<float>(p) / 255.0f - static_cast<float>(mean[c])) /
                    static_cast<float>(deviation[c]);
  return table;
}

void write_channel(const Channel& channel, View view, const std::array<float, 256>& table,
                   float* out) {
  const std::int64_t height = channel.height, width = channel.width;
  const std::int64_t shift = view.mirrored ? -view.left : view.left;
  const std::int64_t begin = std::clamp<std::int64_t>(-shift, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(width - shift, 0, width);
  const std::int64_t step = channel.to_next_column;
  for (std::int64_t y = 0; y < height; ++y, out += width) {
    const std::int64_t row = y + view.top;
    if (row < 0 || row >= height) {
      std::fill_n(out, width, table[0]);
      continue;
    }
    const std::uint8_t* in = channel.first + row * channel.to_next_row;
    std::fill(out, out + begin, table[0]);
    if (view.mirrored) {
      const std::int64_t last = width - 1 + view.left;
      for (std::int64_t x = begin; x < end; ++x) out[x] = table[in[(last - x) * step]];
    } else {
      for (std::int64_t x = begin; x < end; ++x) out[x] = table[in[(view.left + x) * step]];
    }
    std::fill(out + end, out + width, table[0]);
  }
}

}  // namespace pipewright
