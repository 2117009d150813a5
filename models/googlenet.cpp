// SPDX-License-Identifier: Apache-2.0
/// GoogLeNet (Szegedy et al., 2015) with batch norm and without auxiliary classifiers: `cifar` as
/// in SpecTrain and PipeOptim (6,166,250 parameters with 10 classes), `torchvision` for large
/// images (6,624,904 with 1000). A pool belongs to the layer before it.
///
/// Parameters and buffers have torchvision's names: "inception3a.branch2.1.conv.weight". Only
/// `cifar` has "….conv.bias" and "branch3.2", the second of the two 3×3 convolutions that replace a
/// 5×5.
#include "models/parts/blocks.h"

namespace pipewright {
namespace {

/// Channels of an inception block: of the 1×1 branch, of reduction and convolution in the 3×3 and
/// the 5×5 branch, and of the pooled branch.
struct Inception {
  const char* name;
  std::int64_t one, three_reduced, three, five_reduced, five, pooled;
  std::int64_t pool = 0;  ///< kernel of the max-pool behind it in torchvision's form; 0: none
};
constexpr Inception kInceptions[] = {
    {"inception3a", 64, 96, 128, 16, 32, 32},        {"inception3b", 128, 128, 192, 32, 96, 64, 3},
    {"inception4a", 192, 96, 208, 16, 48, 64},       {"inception4b", 160, 112, 224, 24, 64, 64},
    {"inception4c", 128, 128, 256, 24, 64, 64},      {"inception4d", 112, 144, 288, 32, 64, 64},
    {"inception4e", 256, 160, 320, 32, 128, 128, 2}, {"inception5a", 256, 160, 320, 32, 128, 128},
    {"inception5b", 384, 192, 384, 48, 128, 128}};
constexpr double kGooglenetStd =
    0.01;  ///< for torchvision's weights and the CIFAR form's classifier
constexpr std::int64_t kLeastLargeSize = 15;  ///< the third pool's input is 2×2

class GoogLeNet final : public BlockModel {
 public:
  explicit GoogLeNet(Options& options)
      : BlockModel(options, 4, "gbpl_fc"),
        cifar_(options.choice(
                   "form", {"cifar", "torchvision"}, "cifar",
                   "Form of the network. cifar: one 3x3 convolution before the inception blocks, "
                   "two 3x3 in place of a 5x5, no dropout; torchvision: 7x7 with stride 2, 1x1 and "
                   "3x3 before them, one 3x3 in place of a 5x5, dropout 0.2.") == "cifar") {
    if (!cifar_ && size() < kLeastLargeSize)
      options.problem(
          "size", concat("is ", size(), ", too small for form: torchvision, which needs at least ",
                         kLeastLargeSize));
  }

  /// Cuts of the CIFAR form: 2 stages as in SpecTrain, 4 as in SpecTrain and PipeOptim.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (cifar_ && stages == 2) return {3, 8};
    if (cifar_ && stages == 4) return {2, 1, 2, 6};
    return {};
  }

 private:
  Blocks blocks() const override {
    Blocks all = stem();
    for (const Inception& channels : kInceptions)
      all.emplace_back(channels.name, channels.pool > 0 ? chain({{"", inception(channels)},
                                                                 {"", halving(channels.pool)}})
                                                        : inception(channels));
    const LinearOptions cifar{.init_std = kGooglenetStd};
    const LinearOptions torchvision{.weight =
                                        Initializer{Initializer::Kind::Normal, kGooglenetStd}};
    all.emplace_back("fc", cifar_ ? classifier_block(classes(), 0, cifar)
                                  : classifier_block(classes(), 0.2, torchvision));
    return all;
  }

  Blocks stem() const {
    if (cifar_) return {{"conv1", unit(192, 3)}};
    return {{"conv1", chain({{"", unit(64, 7, 2)}, {"", halving(3)}})},
            {"conv2", unit(64)},
            {"conv3", chain({{"", unit(192, 3)}, {"", halving(3)}})}};
  }

  Block inception(const Inception& channels) const {
    Blocks five{{"0", unit(channels.five_reduced)}, {"1", unit(channels.five, 3)}};
    if (cifar_) five.emplace_back("2", unit(channels.five, 3));
    return branches(
        {{"branch1", unit(channels.one)},
         {"branch2", chain({{"0", unit(channels.three_reduced)}, {"1", unit(channels.three, 3)}})},
         {"branch3", chain(std::move(five))},
         {"branch4", chain({{"0", keeping_channels([] { return max_pool(3, 1, 1); })},
                            {"1", unit(channels.pooled)}})}});
  }

  Block halving(std::int64_t kernel) const {
    return keeping_channels([kernel, cifar = cifar_] {
      return cifar ? max_pool(3, 2, 1) : max_pool(kernel, 2, 0, /*ceil=*/true);
    });
  }

  Block unit(std::int64_t published, std::int64_t kernel = 1, std::int64_t stride = 1) const {
    if (cifar_)
      return convolution_block(scaled(published),
                               {.kernel = kernel, .stride = stride, .bias = true});
    return convolution_block(scaled(published),
                             {.kernel = kernel,
                              .stride = stride,
                              .eps = 1e-3,
                              .weight = Initializer{Initializer::Kind::Normal, kGooglenetStd}});
  }

  bool cifar_;
};

PIPEWRIGHT_MODEL(googlenet, GoogLeNet, "GoogLeNet with batch norm for small or large images.");

}  // namespace
}  // namespace pipewright
