// SPDX-License-Identifier: Apache-2.0
/// The base of data sets of images, for any form in which images are stored. Only options and
/// open() are left to the data set.
#pragma once

#include <ATen/ops/empty.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/nn/dataset.h"
#include "datasets/images/image_look.h"

namespace pipewright {

/// `Images` holds the images of one split and has size(), label(i), and write(i, look,
/// augmentation, place, x), which writes image i, as sample `place` of the batch, to x;
/// image_look.h says how it is transformed. A data set sets look_ in its constructor and fills
/// train_ and test_ in open().
template <class Images>
class ImageDataset : public Dataset {
 public:
  std::int64_t size(Split split) const final { return images(split).size(); }
  std::vector<std::int64_t> sample_shape() const final { return look_.shape_for(false); }
  std::int64_t classes() const final { return look_.classes; }
  SampleForm form(Task /*targets*/) const override {
    return {.shape = sample_shape(), .classes = look_.classes};
  }

  /// Throws what Images::write() throws.
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* augmentation) const final {
    const Images& from = images(split);
    const std::vector<std::int64_t> shape = look_.shape_for(augmentation == nullptr);
    const auto count = static_cast<std::int64_t>(indices.size());
    Batch batch{{at::empty({count, shape[0], shape[1], shape[2]}, at::kFloat)},
                at::empty({count}, at::kLong)};
    auto* x = batch.x[0].template mutable_data_ptr<float>();
    auto* y = batch.y.template mutable_data_ptr<std::int64_t>();
    for (std::size_t j = 0; j < indices.size(); ++j, x += shape[0] * shape[1] * shape[2]) {
      const std::int64_t index = indices[j];
      PIPEWRIGHT_CHECK(index >= 0 && index < from.size(), "sample ", index, " of ", from.size());
      from.write(static_cast<std::size_t>(index), look_, augmentation, j, x);
      y[j] = from.label(static_cast<std::size_t>(index));
    }
    return batch;
  }

 protected:
  ImageLook look_;
  Images train_, test_;

 private:
  const Images& images(Split split) const { return split == Split::Train ? train_ : test_; }
};

}  // namespace pipewright
