// SPDX-License-Identifier: Apache-2.0
/// ResNets (He et al., 2016), with the stride of a bottleneck on its 3×3 convolution ("v1.5").
///
/// `cut: blocks` has the layers of interlocking backpropagation: stem, one layer per residual
/// block, classifier. `cut: layers` has those of torchgpipe: every convolution, batch norm, ReLU,
/// pool and sum is a layer, and a block's input is a skip tensor until it is added; ResNet-101 has
/// 370 such layers. Both forms have the same parameter names and so the same initial values.
/// torchgpipe's balances of ResNet-101 can be given as lists: [135, 235] (speed) and [140, 230]
/// (accuracy), [44, 92, 124, 110], [26, 22, 33, 44, 44, 66, 66, 69].
///
/// torchvision's names and ours: conv1 = stem, bn1 = stem.bn, layerG.I = blockB (G from 1, I from
/// 0, B from 1 through all groups); within a block convC and bnC are the same, downsample.0 =
/// shortcut.conv, downsample.1 = shortcut.bn; fc = classifier.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {
namespace {

constexpr std::size_t kGroups = 4;
constexpr std::array<std::int64_t, kGroups> kGroupChannels{64, 128, 256, 512};
constexpr std::int64_t kExpansion = 4;  ///< of a bottleneck: output channels per inner channel

struct Form {
  std::array<int, kGroups> blocks;
  bool bottleneck;
};

/// A residual block from `in` channels through `within` inner channels to `out` channels.
struct Block {
  std::string name;
  std::int64_t in, within, out, stride;
  double last_norm;  ///< initial weight of its last batch norm
};

/// A layer, or a part of one, and its output channels.
struct Part {
  std::string name;
  LayerPtr layer;
  std::int64_t channels;
};
using Parts = std::vector<Part>;

LayerPtr convolution_without_bias(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                  std::int64_t stride) {
  return convolution(in, out,
                     {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
}

/// Joins parts into one layer.
LayerPtr joined(Parts parts) {
  std::vector<std::pair<std::string, LayerPtr>> children;
  for (Part& part : parts) children.emplace_back(std::move(part.name), std::move(part.layer));
  return sequence(std::move(children));
}

/// The basic body bn2(conv2(relu(bn1(conv1(x))))), both convolutions 3×3. Within one layer the ReLU
/// may work in place; as a layer of its own it may not, as a cut may lie directly before it.
Parts basic_body(const Block& block, bool in_place) {
  const std::int64_t out = block.out;
  return {{"conv1", convolution_without_bias(block.in, out, 3, block.stride), out},
          {"bn1", batch_norm(out), out},
          {"relu1", activation(Activation::Relu, in_place), out},
          {"conv2", convolution_without_bias(out, out, 3, 1), out},
          {"bn2", batch_norm(out, 1e-5, 0.1, block.last_norm), out}};
}

/// The bottleneck body bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x)))))))): 1×1, 3×3, 1×1.
Parts bottleneck_body(const Block& block, bool in_place) {
  const std::int64_t within = block.within, out = block.out;
  return {{"conv1", convolution_without_bias(block.in, within, 1, 1), within},
          {"bn1", batch_norm(within), within},
          {"relu1", activation(Activation::Relu, in_place), within},
          {"conv2", convolution_without_bias(within, within, 3, block.stride), within},
          {"bn2", batch_norm(within), within},
          {"relu2", activation(Activation::Relu, in_place), within},
          {"conv3", convolution_without_bias(within, out, 1, 1), out},
          {"bn3", batch_norm(out, 1e-5, 0.1, block.last_norm), out}};
}

/// A 1×1 convolution with batch norm where the shape changes; otherwise null, for the input itself.
LayerPtr shortcut(const Block& block) {
  if (block.stride == 1 && block.in == block.out) return nullptr;
  return sequence({{"conv", convolution_without_bias(block.in, block.out, 1, block.stride)},
                   {"bn", batch_norm(block.out)}});
}

class ResNet : public ImageModel {
 public:
  std::vector<LayerPtr> layers() const final {
    std::vector<LayerPtr> all;
    for (Part& part : parts()) {
      part.layer->set_name(std::move(part.name));
      all.push_back(std::move(part.layer));
    }
    return all;
  }

 protected:
  ResNet(Options& options, const Form& form)
      : ImageModel(options, 8, "conv128_bn_conv64_bn_gbpl_fc"),
        form_(form),
        cifar_stem_(
            options.choice("stem", {"cifar", "imagenet"}, form.bottleneck ? "imagenet" : "cifar",
                           "First layers. cifar: 3x3 convolution; imagenet: 7x7 with stride 2 "
                           "and 3x3 max-pool with stride 2.") == "cifar"),
        by_layer_(options.choice("cut", {"blocks", "layers"}, form.bottleneck ? "layers" : "blocks",
                                 "Where the model can be cut. blocks: around residual blocks; "
                                 "layers: around every convolution, batch norm, ReLU and sum.") ==
                  "layers") {}

  bool by_layer() const { return by_layer_; }
  std::int64_t stem_layers() const { return by_layer_ ? (cifar_stem_ ? 3 : 4) : 1; }

  /// Converts a balance that counts stem, blocks and classifier into one that counts layers.
  std::vector<std::int64_t> in_layers(std::vector<std::int64_t> balance) const {
    if (!by_layer_) return balance;
    const std::int64_t of_block = form_.bottleneck ? 11 : 8, of_classifier = 3;
    for (std::int64_t& stage : balance) stage *= of_block;
    balance.front() += stem_layers() - of_block;
    balance.back() += of_classifier - of_block;
    return balance;
  }

 private:
  /// Whether the last batch norm of a block starts at 0, so that the block starts as its shortcut.
  virtual bool starts_as_shortcut(std::size_t group, int block) const {
    (void)group, (void)block;
    return false;
  }

  Output output(std::size_t layer) const final {
    const Parts all = parts();
    const bool flat = layer + (by_layer_ ? 2 : 1) >= all.size();
    return {all[layer].channels, flat};
  }

  Parts parts() const {
    Parts all = stem();
    std::int64_t in = all.back().channels;
    int number = 0;
    for (std::size_t group = 0; group < kGroups; ++group)
      for (int i = 0; i < form_.blocks[group]; ++i) {
        const std::int64_t within = scaled(kGroupChannels[group]);
        const Block block{.name = concat("block", ++number),
                          .in = in,
                          .within = within,
                          .out = form_.bottleneck ? kExpansion * within : within,
                          .stride = group > 0 && i == 0 ? 2 : 1,
                          .last_norm = starts_as_shortcut(group, i) ? 0.0 : 1.0};
        for (Part& part : block_parts(block)) all.push_back(std::move(part));
        in = block.out;
      }
    for (Part& part : classifier(in)) all.push_back(std::move(part));
    return all;
  }

  Parts stem() const {
    const std::int64_t out = scaled(kGroupChannels[0]);
    const std::int64_t kernel = cifar_stem_ ? 3 : 7, stride = cifar_stem_ ? 1 : 2;
    if (!by_layer_)
      return {{"stem",
               convolution_unit("stem", channels(), out,
                                {.kernel = kernel,
                                 .stride = stride,
                                 .bias = false,
                                 .pool = cifar_stem_ ? 0 : 3,
                                 .pool_padding = 1}),
               out}};
    Parts all{{"stem", convolution_without_bias(channels(), out, kernel, stride), out},
              {"stem.bn", batch_norm(out), out},
              {"stem.relu", activation(Activation::Relu), out}};
    if (!cifar_stem_) all.push_back({"stem.pool", max_pool(3, 2, 1), out});
    return all;
  }

  /// The block relu(body(x) + shortcut(x)): either one layer, or a layer for each part. The sum has
  /// the block's name then, because it has the shortcut's parameters.
  Parts block_parts(const Block& block) const {
    Parts body =
        form_.bottleneck ? bottleneck_body(block, !by_layer_) : basic_body(block, !by_layer_);
    if (!by_layer_)
      return {{block.name, residual(joined(std::move(body)), shortcut(block)), block.out}};
    Parts all{{block.name + ".stash", stash(), block.in}};
    for (Part& part : body) {
      part.name = block.name + "." + part.name;
      all.push_back(std::move(part));
    }
    all.push_back({block.name, add_stashed(shortcut(block), Activation::Identity), block.out});
    all.push_back({block.name + ".relu", activation(Activation::Relu), block.out});
    return all;
  }

  Parts classifier(std::int64_t in) const {
    if (!by_layer_)
      return {{"classifier", pooled_classifier("classifier", in, classes()), classes()}};
    return {{"classifier.pool", average_pool_to(1), in},
            {"classifier.flatten", flatten(), in},
            {"classifier", linear(in, classes()), classes()}};
  }

  Form form_;
  bool cifar_stem_, by_layer_;
};

/// ResNet-18: 11,173,962 parameters with 10 classes and the CIFAR stem.
class ResNet18 final : public ResNet {
 public:
  explicit ResNet18(Options& options) : ResNet(options, {{2, 2, 2, 2}, false}) {}
};

/// ResNet-34: 21,282,122 parameters with 10 classes and the CIFAR stem; interlocking
/// backpropagation calls it "ResNet-32".
class ResNet34 final : public ResNet {
 public:
  explicit ResNet34(Options& options) : ResNet(options, {{3, 4, 6, 3}, false}) {}

  /// Interlocking backpropagation's "5,4,4,rest": four components of equal work. The rule in its
  /// code, one unit for each component but the last, can be given as a list, [1, 1, 1, 15], and so
  /// can its [4, 4, 6, 4].
  std::vector<std::int64_t> published_balance(int stages) const override {
    return stages == 4 ? in_layers({5, 4, 4, 5}) : std::vector<std::int64_t>{};
  }
};

/// ResNet-50: 23,528,522 parameters with 10 classes and the ImageNet stem.
class ResNet50 final : public ResNet {
 public:
  explicit ResNet50(Options& options) : ResNet(options, {{3, 4, 6, 3}, true}) {}

  /// SpecTrain's cuts lie within blocks 13, 14 and 15: behind the 3×3 convolution of the first two
  /// and behind the batch norm that follows it in the last. Two tensors cross each. Two stages are
  /// the four in pairs.
  std::vector<std::int64_t> published_balance(int stages) const override {
    const std::int64_t first = stem_layers() + 12 * 11 + 5;
    if (!by_layer()) return {};
    if (stages == 2) return {first + 11, 12 + 19};
    if (stages == 4) return {first, 11, 12, 19};
    return {};
  }
};

/// ResNet-101: 44,549,160 parameters with 1000 classes and the ImageNet stem.
class ResNet101 final : public ResNet {
 public:
  explicit ResNet101(Options& options)
      : ResNet(options, {{3, 4, 23, 3}, true}),
        zero_init_(
            options.choice("zero_init", {"none", "pipeoptim"}, "none",
                           "Layers that start at 0. pipeoptim: the last batch norm of blocks 11 "
                           "to 20, its third stage, as in the code that its authors "
                           "released.") == "pipeoptim") {}

  /// PipeOptim's cut, between blocks.
  std::vector<std::int64_t> published_balance(int stages) const override {
    return stages == 4 ? in_layers({4, 7, 10, 14}) : std::vector<std::int64_t>{};
  }

 private:
  bool starts_as_shortcut(std::size_t group, int block) const override {
    return zero_init_ && group == 2 && block >= 3 && block <= 12;
  }

  bool zero_init_;
};

PIPEWRIGHT_MODEL(resnet18, ResNet18, "ResNet-18 with a stem for small or for large images.");
PIPEWRIGHT_MODEL(resnet34, ResNet34, "ResNet-34 with a stem for small or for large images.");
PIPEWRIGHT_MODEL(resnet50, ResNet50, "ResNet-50, cut between blocks or within them.");
PIPEWRIGHT_MODEL(resnet101, ResNet101, "ResNet-101, cut between blocks or within them.");

}  // namespace
}  // namespace pipewright
