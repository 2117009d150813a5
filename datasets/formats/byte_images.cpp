#include "datasets/formats/byte_images.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kElementsPerSample = std::uint64_t{1} << 20;

/// Which part of an image is seen: its upper left corner, which may lie outside, and mirrored or
/// not.
struct View {
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
};

View drawn_view(const RandomStream& stream, std::uint64_t sample, std::int64_t padding) {
  const std::uint64_t first = sample * kElementsPerSample;
  const auto places = static_cast<std::uint64_t>(2 * padding + 1);
  return {.top = static_cast<std::int64_t>(stream.below(first, places)) - padding,
          .left = static_cast<std::int64_t>(stream.below(first + 1, places)) - padding,
          .mirrored = stream.below(first + 2, 2) == 1};
}

/// One channel of one image, height × width, through the table; black outside of it.
void write_channel(const std::uint8_t* pixels, std::int64_t height, std::int64_t width, View view,
                   const std::array<float, 256>& table, float* out) {
  const std::int64_t shift = view.mirrored ? -view.left : view.left;
  const std::int64_t begin = std::clamp<std::int64_t>(-shift, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(width - shift, 0, width);
  for (std::int64_t y = 0; y < height; ++y, out += width) {
    const std::int64_t row = y + view.top;
    if (row < 0 || row >= height) {
      std::fill_n(out, width, table[0]);
      continue;
    }
    const std::uint8_t* in = pixels + row * width;
    std::fill(out, out + begin, table[0]);
    if (view.mirrored) {
      const std::int64_t last = width - 1 + view.left;
      for (std::int64_t x = begin; x < end; ++x) out[x] = table[in[last - x]];
    } else {
      for (std::int64_t x = begin; x < end; ++x) out[x] = table[in[view.left + x]];
    }
    std::fill(out + end, out + width, table[0]);
  }
}

}  // namespace

void ByteImages::append(std::string_view image_bytes, std::uint8_t label) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(image_bytes.data());
  pixels.insert(pixels.end(), first, first + image_bytes.size());
  labels.push_back(label);
}

PixelTable normalised(std::span<const double> mean, std::span<const double> deviation) {
  PixelTable table(mean.size());
  for (std::size_t c = 0; c < table.size(); ++c)
    for (std::size_t p = 0; p < 256; ++p)
      table[c][p] = (static_cast<float>(p) / 255.0f - static_cast<float>(mean[c])) /
                    static_cast<float>(deviation[c]);
  return table;
}

Batch ByteImageDataset::batch(Split split, std::span<const std::int64_t> indices,
                              const RandomStream* augmentation) const {
  const ByteImages& from = images(split);
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t channels = look_.shape[0], height = look_.shape[1], width = look_.shape[2],
                     plane = height * width;
  Batch batch{{at::empty({count, channels, height, width}, at::kFloat)},
              at::empty({count}, at::kLong)};
  auto* x = batch.x[0].mutable_data_ptr<float>();
  auto* y = batch.y.mutable_data_ptr<std::int64_t>();
  for (std::size_t j = 0; j < indices.size(); ++j) {
    const std::int64_t index = indices[j];
    PIPEWRIGHT_CHECK(index >= 0 && index < from.size(), "sample ", index, " of ", from.size());
    const View view = look_.augment && augmentation != nullptr
                          ? drawn_view(*augmentation, j, look_.padding)
                          : View{};
    const std::uint8_t* pixels = from.pixels.data() + index * channels * plane;
    for (const auto& channel : look_.table) {
      write_channel(pixels, height, width, view, channel, x);
      pixels += plane;
      x += plane;
    }
    y[j] = from.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace pipewright
