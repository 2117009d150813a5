// SPDX-License-Identifier: Apache-2.0
/// Data sets of JPEG and PNG files. The files stay on disk or their bytes in memory; they are
/// decoded batch by batch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "datasets/images/image.h"
#include "datasets/images/image_dataset.h"
#include "datasets/images/image_look.h"

namespace pipewright {

/// The images of one split, in an order that does not depend on the file system.
struct EncodedImages {
  std::filesystem::path root;         ///< folder or archive that `names` are relative to
  std::vector<std::string> names;     ///< names of the files
  std::vector<std::int64_t> labels;   ///< one per name
  std::vector<std::string> contents;  ///< one per name, or empty: files are read on demand
  std::map<std::string, std::int64_t> left_out = {};  ///< other files beside them, by ending

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }
  std::int64_t label(std::size_t i) const { return labels[i]; }
  /// Reads and decodes image i. Throws Error{Data} with the file's name if it is missing, damaged
  /// or no image.
  Image decoded(std::size_t i) const;
  /// The write() that ImageDataset needs. Throws like decoded(), and if look.size is 0 and the
  /// image has another size than the look's shape.
  void write(std::size_t i, const ImageLook& look, const RandomStream* augmentation,
             std::size_t place, float* x) const;
};

using EncodedImageDataset = ImageDataset<EncodedImages>;

}  // namespace pipewright
