// SPDX-License-Identifier: Apache-2.0
/// A small convolutional network for 8×8 to 32×32 images. A laptop trains it in minutes, and it has
/// all that makes pipelines hard: batch norm, dropout and layers of unequal cost.
#include <array>
#include <vector>

#include "models/parts/image_model.h"

namespace pipewright {
namespace {

constexpr std::array<std::int64_t, 7> kChannels{16, 32, 32, 64, 64, 96, 96};
constexpr std::int64_t kSmallestMap = 4;  ///< maps of this size or less are not pooled

/// The network has eight layers: conv1 … conv7, then fc (global average pool, linear). Every second
/// convolution is followed by a 2×2 max-pool, while the map is larger than 4×4, and by dropout.
class Cnn final : public ImageModel {
 public:
  explicit Cnn(Options& options)
      : ImageModel(options, 4, "gbpl_fc"),
        dropout_(options.number("dropout", 0.1, "Dropout probability after every second layer.",
                                {0, 0.99})) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    std::int64_t in = channels(), map = size();
    for (std::size_t i = 0; i < kChannels.size(); ++i) {
      const bool ends_group = i % 2 == 1;
      const bool pools = ends_group && map > kSmallestMap;
      const std::int64_t out = scaled(kChannels[i]);
      all.push_back(convolution_unit(
          concat("conv", i + 1), in, out,
          {.bias = false, .pool = pools ? 2 : 0, .dropout = ends_group ? dropout_ : 0}));
      if (pools) map /= 2;
      in = out;
    }
    all.push_back(pooled_classifier("fc", in, classes()));
    return all;
  }

 private:
  Output output(std::size_t layer) const override {
    if (layer >= kChannels.size()) return {classes(), true};
    return {scaled(kChannels[layer])};
  }

  double dropout_;
};

PIPEWRIGHT_MODEL(cnn, Cnn, "Small convolutional network with batch norm and dropout, 8 layers.");

}  // namespace
}  // namespace pipewright
