// SPDX-License-Identifier: Apache-2.0
/// DenseNet-121 (Huang et al., 2017) with a stem for small or for large images: `cifar` as in
/// SpecTrain (6,956,298 parameters with 10 classes), `imagenet` as in torchvision (7,978,856 with
/// 1000). The layers are the stem, 6 + 12 + 24 + 16 dense layers in four blocks, each of the first
/// three blocks ending with a transition, and the classifier.
///
/// Our names of parameters and torchvision's:
///   stem.conv0.…, stem.norm0.…             → features.conv0.…, features.norm0.…
///   denseblockB.denselayerL.…              → features.denseblockB.denselayerL.…
///   transitionT.…                          → features.transitionT.…
///   classifier.norm5.…                     → features.norm5.…
///   classifier.weight, classifier.bias     → the same
#include <array>
#include <cmath>

#include "models/parts/blocks.h"

namespace pipewright {
namespace {

constexpr std::int64_t kStemChannels = 64, kGrowth = 32, kBottleneck = 128;
constexpr std::array<int, 4> kDenseLayers{6, 12, 24, 16};
constexpr std::int64_t kLeastImageNetSize = 29;  ///< the last transition's input is 2×2

class DenseNet121 final : public BlockModel {
 public:
  explicit DenseNet121(Options& options)
      : BlockModel(options, 8, "gbpl_fc"),
        cifar_(options.choice("stem", {"cifar", "imagenet"}, "cifar",
                              "First layers. cifar: 3x3 convolution; imagenet: 7x7 with stride 2, "
                              "batch norm, ReLU and 3x3 max-pool with stride 2. Weights are "
                              "initialised as SpecTrain's or as torchvision's.") == "cifar"),
        new_first_(options.choice("concatenate", {"new_first", "old_first"},
                                  cifar_ ? "new_first" : "old_first",
                                  "Where a dense layer puts the channels it makes: before those "
                                  "that came in (SpecTrain; stem cifar's default) or behind them "
                                  "(torchvision; stem imagenet's default).") == "new_first") {
    if (!cifar_ && size() < kLeastImageNetSize)
      options.problem("size",
                      concat("is ", size(), ", too small for stem: imagenet, which needs at least ",
                             kLeastImageNetSize));
  }

  /// SpecTrain's cuts of the CIFAR form. With 4 stages each has one block with its transition, as
  /// in PipeOptim; with 2 stages the first has the first block only.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (cifar_ && stages == 2) return {8, 55};
    if (cifar_ && stages == 4) return {8, 13, 25, 17};
    return {};
  }

 private:
  Blocks blocks() const override {
    Blocks all{{"stem", stem()}};
    for (std::size_t b = 0; b < kDenseLayers.size(); ++b) {
      for (int layer = 1; layer <= kDenseLayers[b]; ++layer)
        all.emplace_back(concat("denseblock", b + 1, ".denselayer", layer), dense_layer());
      if (b + 1 < kDenseLayers.size()) all.emplace_back(concat("transition", b + 1), transition());
    }
    const LinearOptions cifar{.init_std = 0.01};
    const LinearOptions imagenet{.bias_init = Initializer{Initializer::Kind::Constant, 0}};
    all.emplace_back("classifier",
                     chain({{"", norm_relu("norm5")},
                            {"", classifier_block(classes(), 0, cifar_ ? cifar : imagenet)}}));
    return all;
  }

  Block stem() const {
    if (cifar_) return chain({{"conv0", convolution_to(scaled(kStemChannels), {.padding = 1})}});
    return chain(
        {{"conv0", convolution_to(scaled(kStemChannels), {.kernel = 7, .stride = 2, .padding = 3})},
         {"", norm_relu("norm0")},
         {"", keeping_channels([] { return max_pool(3, 2, 1); })}});
  }

  Block dense_layer() const {
    const Block made =
        chain({{"", norm_relu("norm1")},
               {"conv1", convolution_to(scaled(kBottleneck), {.kernel = 1})},
               {"", norm_relu("norm2")},
               {"conv2", convolution_to(scaled(kGrowth), {.kernel = 3, .padding = 1})}});
    const Block input = keeping_channels([] { return nullptr; });
    return new_first_ ? branches({{"", made}, {"input", input}})
                      : branches({{"input", input}, {"", made}});
  }

  Block transition() const {
    return [this](std::int64_t in) {
      return chain({{"", norm_relu("norm")},
                    {"conv", convolution_to(in / 2, {.kernel = 1})},
                    {"", keeping_channels([] { return average_pool(2, 2); })}})(in);
    };
  }

  /// A convolution with Kaiming-normal weights: fan out in SpecTrain's form, fan in in
  /// torchvision's.
  Block convolution_to(std::int64_t out, ConvolutionOptions options) const {
    options.bias = false;
    return [=, fan_in = !cifar_](std::int64_t in) mutable {
      const auto inputs = static_cast<double>(in * options.kernel * options.kernel);
      if (fan_in) options.weight = Initializer{Initializer::Kind::Normal, std::sqrt(2 / inputs)};
      return Made{convolution(in, out, options), out};
    };
  }

  bool cifar_, new_first_;
};

PIPEWRIGHT_MODEL(densenet121, DenseNet121,
                 "DenseNet-121 with a stem for small or for large images.");

}  // namespace
}  // namespace pipewright
