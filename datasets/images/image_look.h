/// How the images of a data set look to the model: augmented in training, resized where asked for,
/// normalised. What is done is torchvision's, so that published recipes can be repeated.
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
  std::vector<std::int64_t> shape;  ///< {channels, height, width} as stored; 0 where they differ
  std::int64_t classes = 0;
  PixelTable table;  ///< one per channel
  bool augment = false;
  std::int64_t padding = 0;
  bool flip = true;
  std::int64_t size = 0;       ///< side of the square the model gets; 0: as stored
  std::int64_t eval_size = 0;  ///< the same in evaluation; 0: `size`

  /// {channels, height, width} of what is written.
  std::vector<std::int64_t> shape_for(bool evaluation) const;
};

/// What the options of a data set of colour images are when nobody gives them.
struct ColourDefaults {
  std::array<double, 3> mean, deviation;
  std::int64_t size = 0;  ///< > 0: the images differ in size, so `size: 0` is not allowed
};
inline constexpr std::array kCifarMean{0.4914, 0.4822, 0.4465},
    kCifarDeviation{0.2023, 0.1994, 0.2010};
inline constexpr std::array kImageNetMean{0.485, 0.456, 0.406},
    kImageNetDeviation{0.229, 0.224, 0.225};

/// Reads `augment`, `flip`, `size`, `eval_size`, `mean` and `std`. `shape` and `padding` are set.
void read_colour_options(Options& options, const ColourDefaults& defaults, ImageLook& look);

/// Writes one image, its channels one after another, of look.shape_for(augmentation == nullptr).
///
/// Without `size`: in training with `augment`, the image is padded with `padding` black pixels on
/// each side, cut to its own size at a random place, and mirrored left to right with probability
/// 1/2 if `flip`. Draws of the sample: element 0 (row), 1 (column), 2 (mirror).
///
/// With `size`: in training with `augment`, a random part (random_part) is resized to size × size
/// and mirrored as above (element kMirrorElement); otherwise the shorter side is resized to
/// size · 256/224, rounded, and the middle size × size pixels are taken.
///
/// The elements are those of `augmentation` from sample · 2^20 on.
void write_image(std::span<const Channel> channels, const ImageLook& look,
                 const RandomStream* augmentation, std::uint64_t sample, float* out);

/// A part with 8 to 100 % of the area and an aspect ratio from 3:4 to 4:3 (its logarithm is
/// uniform), both drawn up to ten times until it fits; after that the largest part in the middle
/// with an allowed ratio. Try t draws elements first + 4t (area), + 1 (ratio), + 2 (top), + 3
/// (left).
Box random_part(std::int64_t height, std::int64_t width, const RandomStream& stream,
                std::uint64_t first);
inline constexpr std::uint64_t kMirrorElement = 40;

}  // namespace pipewright
