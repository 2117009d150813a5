/// ResNet-18 (He et al., 2016) as interlocking backpropagation cuts it: stem, eight basic blocks,
/// classifier; 11,173,962 parameters with 10 classes and the CIFAR stem.
#include <array>
#include <vector>

#include "core/stage/layers.h"
#include "models/image_model.h"

namespace pipewright {
namespace {

constexpr std::int64_t kStemChannels = 64;
constexpr std::array<std::int64_t, 8> kChannels{64, 64, 128, 128, 256, 256, 512, 512};

LayerPtr convolution_without_bias(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                  std::int64_t stride) {
  return convolution(in, out,
                     {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
}

/// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)); the shortcut is a 1×1 convolution and
/// batch norm where the shape changes, the input itself elsewhere.
LayerPtr basic_block(std::string name, std::int64_t in, std::int64_t out, std::int64_t stride) {
  LayerPtr body = sequence({{"conv1", convolution_without_bias(in, out, 3, stride)},
                            {"bn1", batch_norm(out)},
                            {"", activation(Activation::Relu, /*in_place=*/true)},
                            {"conv2", convolution_without_bias(out, out, 3, 1)},
                            {"bn2", batch_norm(out)}});
  LayerPtr shortcut;
  if (stride != 1 || in != out)
    shortcut =
        sequence({{"conv", convolution_without_bias(in, out, 1, stride)}, {"bn", batch_norm(out)}});
  LayerPtr block = residual(std::move(body), std::move(shortcut));
  block->set_name(std::move(name));
  return block;
}

class ResNet18 final : public ImageModel {
 public:
  explicit ResNet18(Options& options)
      : ImageModel(options, 8, "conv128_bn_conv64_bn_gbpl_fc"),
        cifar_stem_(options.choice("stem", {"cifar", "imagenet"}, "cifar",
                                   "cifar: 3x3 convolution; imagenet: 7x7 with stride 2 and 3x3 "
                                   "max-pool with stride 2.") == "cifar") {}

  std::vector<LayerPtr> layers() const override {
    std::int64_t in = scaled(kStemChannels);
    const ConvolutionUnitOptions cifar{.bias = false};
    const ConvolutionUnitOptions imagenet{
        .kernel = 7, .stride = 2, .bias = false, .pool = 3, .pool_padding = 1};
    std::vector<LayerPtr> all{
        convolution_unit("stem", channels(), in, cifar_stem_ ? cifar : imagenet)};
    for (std::size_t i = 0; i < kChannels.size(); ++i) {
      const std::int64_t out = scaled(kChannels[i]);
      const std::int64_t stride = i > 0 && i % 2 == 0 ? 2 : 1;
      all.push_back(basic_block(concat("block", i + 1), in, out, stride));
      in = out;
    }
    all.push_back(pooled_classifier("classifier", in, classes()));
    return all;
  }

 private:
  Output output(std::size_t layer) const override {
    if (layer == 0) return {scaled(kStemChannels)};
    if (layer > kChannels.size()) return {classes(), true};
    return {scaled(kChannels[layer - 1])};
  }

  bool cifar_stem_;
};

PIPEWRIGHT_MODEL(resnet18, ResNet18, "ResNet-18 with a stem for small or for large images.");

}  // namespace
}  // namespace pipewright
