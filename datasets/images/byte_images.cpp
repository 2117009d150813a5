#include "datasets/images/byte_images.h"

#include <ATen/ops/empty.h>

#include "core/base/error.h"

namespace pipewright {

void ByteImages::append(std::string_view image_bytes, std::uint8_t label) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(image_bytes.data());
  pixels.insert(pixels.end(), first, first + image_bytes.size());
  labels.push_back(label);
}

Batch ByteImageDataset::batch(Split split, std::span<const std::int64_t> indices,
                              const RandomStream* augmentation) const {
  const ByteImages& from = images(split);
  const std::int64_t channels = look_.shape[0], height = look_.shape[1], width = look_.shape[2];
  const std::vector<std::int64_t> shape = look_.shape_for(augmentation == nullptr);
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{{at::empty({count, shape[0], shape[1], shape[2]}, at::kFloat)},
              at::empty({count}, at::kLong)};
  auto* x = batch.x[0].mutable_data_ptr<float>();
  auto* y = batch.y.mutable_data_ptr<std::int64_t>();
  for (std::size_t j = 0; j < indices.size(); ++j, x += shape[0] * shape[1] * shape[2]) {
    const std::int64_t index = indices[j];
    PIPEWRIGHT_CHECK(index >= 0 && index < from.size(), "sample ", index, " of ", from.size());
    const std::uint8_t* pixels = from.pixels.data() + index * channels * height * width;
    write_image(planes(pixels, channels, height, width), look_, augmentation, j, x);
    y[j] = from.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace pipewright
