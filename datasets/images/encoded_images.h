/// Data sets of JPEG and PNG files: kept as files or as their bytes, decoded batch by batch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/stage/dataset.h"
#include "datasets/images/image.h"
#include "datasets/images/image_look.h"

namespace pipewright {

/// Images of one split, in an order that is the same on every file system.
struct EncodedImages {
  std::filesystem::path root;         ///< what `names` are relative to: a folder or an archive
  std::vector<std::string> names;     ///< of the files
  std::vector<std::int64_t> labels;   ///< as many
  std::vector<std::string> contents;  ///< as many, or none: the files are read when asked for

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }
  /// Throws Error{Data} naming the file that is missing, damaged, or no image.
  Image decoded(std::int64_t index) const;
};

/// Everything of a data set of encoded images but its options and open(), which fills train_ and
/// test_. What becomes of an image is in image_look.h. Where look_.size is 0, all images must have
/// the size of look_.shape.
class EncodedImageDataset : public Dataset {
 public:
  std::int64_t size(Split split) const final { return images(split).size(); }
  std::vector<std::int64_t> sample_shape() const final { return look_.shape_for(false); }
  std::int64_t classes() const final { return look_.classes; }
  /// Throws Error{Data} as EncodedImages::decoded(), and for an image of another size.
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* augmentation) const final;

 protected:
  ImageLook look_;  ///< set by the constructor of the data set
  EncodedImages train_, test_;

 private:
  const EncodedImages& images(Split split) const { return split == Split::Train ? train_ : test_; }
};

}  // namespace pipewright
