// SPDX-License-Identifier: Apache-2.0
/// AlexNet in Krizhevsky's form for one GPU (2014), as torchvision defines it: 61,100,840
/// parameters with 1000 classes. One layer = convolution + ReLU (+ pool), the last pool, or dropout
/// + linear (+ ReLU). Weights and biases have PyTorch's default initialisation.
///
/// torchvision's names: features.0, 3, 6, 8, 10 = conv1 … conv5; classifier.1, 4, 6 = fc6, fc7,
/// fc8.
#include <vector>

#include "core/nn/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {
namespace {

struct AlexNetConvolution {
  const char* name;
  std::int64_t channels, kernel, stride, padding;
  bool pool;
};
constexpr AlexNetConvolution kAlexNetConvolutions[] = {{"conv1", 64, 11, 4, 2, true},
                                                       {"conv2", 192, 5, 1, 2, true},
                                                       {"conv3", 384, 3, 1, 1, false},
                                                       {"conv4", 256, 3, 1, 1, false},
                                                       {"conv5", 256, 3, 1, 1, false}};
constexpr std::int64_t kAlexNetHidden = 4096;   ///< output features of fc6 and fc7
constexpr std::int64_t kAlexNetPooledSize = 6;  ///< side of fc6's input map, for any image size
constexpr std::int64_t kLeastSize = 63;         ///< of images: the last pool's input is 3×3

LayerPtr unit(const AlexNetConvolution& of, std::int64_t in, std::int64_t out) {
  std::vector<std::pair<std::string, LayerPtr>> parts{
      {"", convolution(in, out,
                       {.kernel = of.kernel,
                        .stride = of.stride,
                        .padding = of.padding,
                        .kaiming_fan_out = false})},
      {"", activation(Activation::Relu, /*in_place=*/true)}};
  if (of.pool) parts.emplace_back("", max_pool(3, 2));
  return sequence(std::move(parts));
}

LayerPtr dropped_linear(std::int64_t in, std::int64_t out) {
  return sequence({{"dropout", dropout(0.5)},
                   {"", linear(in, out, {.activation = Activation::Relu, .flatten = true})}});
}

class AlexNet final : public ImageModel {
 public:
  explicit AlexNet(Options& options)
      : ImageModel(options, kLeastSize, "gbpl_fc", {.size = 224, .classes = 1000}) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    const auto add = [&](const char* name, LayerPtr layer) {
      layer->set_name(name);
      all.push_back(std::move(layer));
    };
    std::int64_t in = channels();
    for (const AlexNetConvolution& of : kAlexNetConvolutions) {
      const std::int64_t out = scaled(of.channels);
      add(of.name, unit(of, in, out));
      in = out;
    }
    const std::int64_t hidden = scaled(kAlexNetHidden);
    add("pool5", sequence({{"", max_pool(3, 2)}, {"", average_pool_to(kAlexNetPooledSize)}}));
    add("fc6", dropped_linear(in * kAlexNetPooledSize * kAlexNetPooledSize, hidden));
    add("fc7", dropped_linear(hidden, hidden));
    add("fc8", linear(hidden, classes()));
    return all;
  }

  /// PipeOptim's cut into 4 stages: the third ends before the last pool.
  std::vector<std::int64_t> published_balance(int stages) const override {
    return stages == 4 ? std::vector<std::int64_t>{1, 1, 3, 4} : std::vector<std::int64_t>{};
  }

 private:
  Output output(std::size_t layer) const override {
    constexpr std::size_t kConvolutionCount = std::size(kAlexNetConvolutions);
    if (layer < kConvolutionCount) return {scaled(kAlexNetConvolutions[layer].channels)};
    if (layer == kConvolutionCount)
      return {scaled(kAlexNetConvolutions[kConvolutionCount - 1].channels)};
    return {layer < kConvolutionCount + 3 ? scaled(kAlexNetHidden) : classes(), true};
  }
};

PIPEWRIGHT_MODEL(alexnet, AlexNet, "AlexNet for large images, 9 layers.");

}  // namespace
}  // namespace pipewright
