/// Data sets of 8-bit images: kept as bytes in memory, made into normalised floats batch by batch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/stage/dataset.h"

namespace pipewright {

/// Images of one split. Image i is pixels[i·C·H·W …), its channels one after another.
struct ByteImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  void append(std::string_view image_bytes, std::uint8_t label);
};

/// For each channel, what each of the 256 pixel values becomes.
using PixelTable = std::vector<std::array<float, 256>>;

/// (p / 255 − mean[c]) / deviation[c], in float32 and in this order: torchvision's bits.
PixelTable normalised(std::span<const double> mean, std::span<const double> deviation);

/// Everything of a data set of byte images but its options and open(), which fills train_ and
/// test_.
///
/// Augmentation: the image is padded with `padding` black pixels on each side, cut to its own size
/// at a random place, and mirrored left to right with probability 1/2. Sample j of a batch draws
/// elements j·2^20 (row), +1 (column) and +2 (mirror) of the stream.
class ByteImageDataset : public Dataset {
 public:
  std::int64_t size(Split split) const final { return images(split).size(); }
  std::vector<std::int64_t> sample_shape() const final { return look_.shape; }
  std::int64_t classes() const final { return look_.classes; }
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* augmentation) const final;

 protected:
  struct Look {
    std::vector<std::int64_t> shape;  ///< {channels, height, width}
    std::int64_t classes = 0;
    PixelTable table;  ///< one per channel
    bool augment = false;
    std::int64_t padding = 0;
  };

  Look look_;  ///< set by the constructor of the data set
  ByteImages train_, test_;

 private:
  const ByteImages& images(Split split) const { return split == Split::Train ? train_ : test_; }
};

}  // namespace pipewright
