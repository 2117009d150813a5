// SPDX-License-Identifier: Apache-2.0
/// The transformation from stored images to the model's inputs: augmentation in training, resizing
/// on request, normalisation. It follows torchvision, so that published recipes can be repeated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/config/options.h"
#include "datasets/images/pixels.h"
#include "datasets/images/resize.h"

namespace pipewright {

struct ImageLook {
  std::vector<std::int64_t> shape;  ///< stored {channels, height, width}; 0 if they vary
  std::int64_t classes = 0;
  PixelTable table;  ///< one per channel
  bool augment = false;
  std::int64_t padding = 0;
  bool flip = true;
  std::int64_t size = 0;       ///< side of the model's square input; 0: as stored
  std::int64_t eval_size = 0;  ///< `size` in evaluation; 0: the same

  /// {channels, height, width} of the model's input.
  std::vector<std::int64_t> shape_for(bool evaluation) const;
};

/// Default values of the options of colour images.
struct ColourDefaults {
  std::array<double, 3> mean, deviation;
  std::int64_t size = 0;  ///< > 0: image sizes vary, so `size: 0` is an error
};
inline constexpr std::array kCifarMean{0.4914, 0.4822, 0.4465},
    kCifarDeviation{0.2023, 0.1994, 0.2010};
inline constexpr std::array kImageNetMean{0.485, 0.456, 0.406},
    kImageNetDeviation{0.229, 0.224, 0.225};

/// Reads the options `augment`, `flip`, `size`, `eval_size`, `mean` and `std` into `look`, whose
/// `shape` and `padding` must be set.
void read_colour_options(Options& options, const ColourDefaults& defaults, ImageLook& look);

/// Writes one image of the shape look.shape_for(augmentation == nullptr), channel by channel.
///
/// Without `size`: in training with `augment`, the image is padded with `padding` black pixels on
/// each side, cropped to its own size at a random place and, if `flip`, mirrored left to right with
/// probability 1/2. It draws elements 0 (row), 1 (column) and 2 (mirror) of the sample.
///
/// With `size`: in training with `augment`, a random part (random_part()) is resized to size × size
/// and mirrored as above (element kMirrorElement); otherwise the shorter side is resized to size ·
/// 256/224, rounded, and the central size × size pixels are taken.
///
/// The sample's elements are those of `augmentation` from sample · 2^20 on.
void write_image(std::span<const Channel> channels, const ImageLook& look,
                 const RandomStream* augmentation, std::uint64_t sample, float* out);

/// Draws a part with 8 to 100 % of the area and an aspect ratio from 3:4 to 4:3 (log-uniform). It
/// tries up to ten times until the part fits; then it takes the largest central part with an
/// allowed ratio. Try t draws elements first + 4t (area), + 1 (ratio), + 2 (top), + 3 (left).
Box random_part(std::int64_t height, std::int64_t width, const RandomStream& stream,
                std::uint64_t first);
inline constexpr std::uint64_t kMirrorElement = 40;

}  // namespace pipewright
