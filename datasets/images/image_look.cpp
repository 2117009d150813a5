// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/image_look.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kElementsPerSample = std::uint64_t{1} << 20;
constexpr std::int64_t kLargestSize = 4096;

std::vector<double> per_channel(Options& options, const std::string& name,
                                std::span<const double> fallback, Range range,
                                const std::string& help) {
  const std::vector<double> usual(fallback.begin(), fallback.end());
  std::vector<double> values = options.numbers(name, usual, help, range);
  if (values.size() == usual.size()) return values;
  options.problem(name, concat("needs 3 numbers, one per channel; it has ", values.size()));
  return usual;
}

std::int64_t rounded(double value) {  // ties to even, as Python's round()
  return static_cast<std::int64_t>(std::nearbyint(value));
}

View padded_view(const RandomStream& stream, std::uint64_t first, const ImageLook& look) {
  const auto places = static_cast<std::uint64_t>(2 * look.padding + 1);
  return {.top = static_cast<std::int64_t>(stream.below(first, places)) - look.padding,
          .left = static_cast<std::int64_t>(stream.below(first + 1, places)) - look.padding,
          .mirrored = look.flip && stream.below(first + 2, 2) == 1};
}

/// Resizes, mirrors and normalises all channels in the same way.
void write_resized(std::span<const Channel> channels, const Resize& resize, std::int64_t side,
                   bool mirrored, const PixelTable& table, float* out) {
  std::vector<std::uint8_t> plane(static_cast<std::size_t>(side * side));
  for (std::size_t c = 0; c < channels.size(); ++c, out += side * side) {
    resize.apply(channels[c], plane.data());
    write_channel({plane.data(), side, side, side, 1}, {.mirrored = mirrored}, table[c], out);
  }
}

void write_random_part(std::span<const Channel> channels, const ImageLook& look,
                       const RandomStream& stream, std::uint64_t first, float* out) {
  const Box part = random_part(channels[0].height, channels[0].width, stream, first);
  std::vector<Channel> cut;
  for (const Channel& channel : channels)
    cut.push_back(channel.part(part.top, part.left, part.height, part.width));
  const Resize resize(part.height, part.width, look.size, look.size, {0, 0, look.size, look.size});
  const bool mirrored = look.flip && stream.below(first + kMirrorElement, 2) == 1;
  write_resized(cut, resize, look.size, mirrored, look.table, out);
}

void write_middle(std::span<const Channel> channels, const PixelTable& table, std::int64_t side,
                  float* out) {
  const std::int64_t height = channels[0].height, width = channels[0].width;
  const std::int64_t shorter = rounded(static_cast<double>(side) * 256 / 224);
  const std::int64_t tall = height <= width ? shorter : shorter * height / width;
  const std::int64_t wide = height <= width ? shorter * width / height : shorter;
  const auto margin = [side](std::int64_t whole) {
    return rounded(static_cast<double>(whole - side) / 2);
  };
  const Resize resize(height, width, tall, wide, {margin(tall), margin(wide), side, side});
  write_resized(channels, resize, side, false, table, out);
}

}  // namespace

std::vector<std::int64_t> ImageLook::shape_for(bool evaluation) const {
  if (size == 0) return shape;
  const std::int64_t side = evaluation && eval_size > 0 ? eval_size : size;
  return {shape[0], side, side};
}

void read_colour_options(Options& options, const ColourDefaults& defaults, ImageLook& look) {
  const bool unequal = defaults.size > 0;
  const std::string own =
      unequal ? ""
              : concat(look.padding,
                       " black pixels of padding and a random crop of the image's own "
                       "size; with `size` ");
  look.augment =
      options.flag("augment", true,
                   "Training images: " + own +
                       "a random part (8 to 100 % of the area, sides 3:4 to 4:3) resized to "
                       "size × size; mirrored with probability 1/2.");
  look.flip = options.flag("flip", true, "Whether augmented images are mirrored.");
  look.size = options.integer(
      "size", defaults.size,
      concat("Side of the square images that the model gets. Without augmentation, and in "
             "evaluation, the shorter side becomes size · 256/224 and the middle is taken.",
             std::string(unequal ? "" : " 0 = the images as they are.")),
      Range{unequal ? 1.0 : 0.0, static_cast<double>(kLargestSize)});
  look.eval_size =
      options.integer("eval_size", 0, "The same for evaluation, if it differs; 0 = size.",
                      Range{0, static_cast<double>(kLargestSize)});
  if (look.eval_size > 0 && look.size == 0)
    options.problem("eval_size", "needs size as well: without it images stay as they are");
  const auto mean = per_channel(options, "mean", defaults.mean, {},
                                "Subtracted from the pixels, which run from 0 to 1; red, green, "
                                "blue.");
  const auto deviation =
      per_channel(options, "std", defaults.deviation, Range{.least = 1e-6},
                  "What the pixels are divided by after that; red, green, blue.");
  look.table = normalised(mean, deviation);
}

void write_image(std::span<const Channel> channels, const ImageLook& look,
                 const RandomStream* augmentation, std::uint64_t sample, float* out) {
  const bool augmented = look.augment && augmentation != nullptr;
  const std::uint64_t first = sample * kElementsPerSample;
  if (look.size == 0) {
    const View view = augmented ? padded_view(*augmentation, first, look) : View{};
    for (std::size_t c = 0; c < channels.size(); ++c) {
      write_channel(channels[c], view, look.table[c], out);
      out += channels[c].height * channels[c].width;
    }
  } else if (augmented) {
    write_random_part(channels, look, *augmentation, first, out);
  } else {
    write_middle(channels, look.table, look.shape_for(augmentation == nullptr)[1], out);
  }
}

Box random_part(std::int64_t height, std::int64_t width, const RandomStream& stream,
                std::uint64_t first) {
  constexpr double kLeastArea = 0.08, kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;
  constexpr int kTries = 10;
  const auto area = static_cast<double>(height * width);
  for (int t = 0; t < kTries; ++t, first += 4) {
    const double part = area * (kLeastArea + (1 - kLeastArea) * stream.uniform(first));
    const double low = std::log(kLeastRatio), high = std::log(kMostRatio);
    const double ratio = std::exp(low + (high - low) * stream.uniform(first + 1));
    const std::int64_t w = rounded(std::sqrt(part * ratio)), h = rounded(std::sqrt(part / ratio));
    if (w <= 0 || h <= 0 || w > width || h > height) continue;
    const auto drawn = [&](std::uint64_t element, std::int64_t room) {
      return static_cast<std::int64_t>(stream.below(element, static_cast<std::uint64_t>(room + 1)));
    };
    return {drawn(first + 2, height - h), drawn(first + 3, width - w), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (ratio < kLeastRatio) h = rounded(static_cast<double>(w) / kLeastRatio);
  if (ratio > kMostRatio) w = rounded(static_cast<double>(h) * kMostRatio);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

}  // namespace pipewright
