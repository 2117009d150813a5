#include "datasets/images/encoded_images.h"

#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 28;

void check_size(const Image& image, const ImageLook& look, const EncodedImages& from,
                std::size_t index) {
  const std::int64_t height = look.shape[1], width = look.shape[2];
  if (look.size > 0 || (image.height == height && image.width == width)) return;
  throw Error(ErrorKind::Data,
              concat("image of ", image.width, " × ", image.height, " pixels, must be ", width,
                     " × ", height, "; dataset.size makes all equal"),
              (from.root / from.names[index]).string());
}

}  // namespace

Image EncodedImages::decoded(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  const std::filesystem::path path = root / names[i];
  if (!contents.empty()) return decode_image(contents[i], path.string());
  return decode_image(read_file(path, kLargestFile), path.string());
}

Batch EncodedImageDataset::batch(Split split, std::span<const std::int64_t> indices,
                                 const RandomStream* augmentation) const {
  const EncodedImages& from = images(split);
  const std::vector<std::int64_t> shape = look_.shape_for(augmentation == nullptr);
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{{at::empty({count, shape[0], shape[1], shape[2]}, at::kFloat)},
              at::empty({count}, at::kLong)};
  auto* x = batch.x[0].mutable_data_ptr<float>();
  auto* y = batch.y.mutable_data_ptr<std::int64_t>();
  for (std::size_t j = 0; j < indices.size(); ++j, x += shape[0] * shape[1] * shape[2]) {
    const std::int64_t index = indices[j];
    PIPEWRIGHT_CHECK(index >= 0 && index < from.size(), "sample ", index, " of ", from.size());
    const auto at = static_cast<std::size_t>(index);
    const Image image = from.decoded(index);
    check_size(image, look_, from, at);
    write_image(image.channels(), look_, augmentation, j, x);
    y[j] = from.labels[at];
  }
  return batch;
}

}  // namespace pipewright
