/// Data sets of small 8-bit images of one size: kept as bytes in memory, made into normalised
/// floats batch by batch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/stage/dataset.h"
#include "datasets/images/image_look.h"

namespace pipewright {

/// Images of one split. Image i is pixels[i·C·H·W …), its channels one after another.
struct ByteImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  void append(std::string_view image_bytes, std::uint8_t label);
};

/// Everything of a data set of byte images but its options and open(), which fills train_ and
/// test_. What becomes of an image is in image_look.h.
class ByteImageDataset : public Dataset {
 public:
  std::int64_t size(Split split) const final { return images(split).size(); }
  std::vector<std::int64_t> sample_shape() const final { return look_.shape_for(false); }
  std::int64_t classes() const final { return look_.classes; }
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* augmentation) const final;

 protected:
  ImageLook look_;  ///< set by the constructor of the data set
  ByteImages train_, test_;

 private:
  const ByteImages& images(Split split) const { return split == Split::Train ? train_ : test_; }
};

}  // namespace pipewright
