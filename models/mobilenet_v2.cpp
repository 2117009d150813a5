// SPDX-License-Identifier: Apache-2.0
/// MobileNetV2 (Sandler et al., 2018) as torchvision defines it, with torchvision's names: 20
/// layers, features.0 … features.18 and classifier; 3,504,872 parameters with 1000 classes.
///
/// In published split learning with compressed boundaries the client has the first and the last
/// layer. These are not contiguous, so in the published balances they are two stages, to be placed
/// on one worker: 3 stages with `pipeline.placement: [0, 1, 0]`, 5 stages with `placement: [0, 1,
/// 2, 3, 0]`. (Later code of that work cuts features.0 before its ReLU6, where this model cannot be
/// cut.)
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {
namespace {

/// Consecutive inverted residual blocks of equal width; `stride` is that of the first.
struct Group {
  std::int64_t expansion, channels, blocks, stride;
};
constexpr Group kMobileGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                   {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr std::int64_t kMobileStemChannels = 32, kLastChannels = 1280;
constexpr double kMobileDropout = 0.2;
constexpr double kMobileLinearStd = 0.01;
constexpr std::int64_t kCorner = 4;  ///< side of the corner that `pool: top_left_4x4` averages

struct UnitOptions {
  std::int64_t kernel = 1, stride = 1, groups = 1;
};

LayerPtr bare_convolution(std::int64_t in, std::int64_t out, UnitOptions of) {
  return convolution(in, out,
                     {.kernel = of.kernel,
                      .stride = of.stride,
                      .padding = of.kernel / 2,
                      .groups = of.groups,
                      .bias = false});
}

/// Convolution, batch norm, ReLU6.
LayerPtr unit(std::int64_t in, std::int64_t out, UnitOptions of) {
  return sequence({{"0", bare_convolution(in, out, of)},
                   {"1", batch_norm(out)},
                   {"2", activation(Activation::Relu6, /*in_place=*/true)}});
}

/// An inverted residual block: 1×1 convolution to expansion · in channels, depthwise 3×3, 1×1 to
/// `out` channels without activation; with `residual_sum` the input is added.
LayerPtr inverted_residual(std::int64_t in, std::int64_t out, std::int64_t expansion,
                           std::int64_t stride, bool residual_sum) {
  const std::int64_t within = expansion * in;
  std::vector<std::pair<std::string, LayerPtr>> parts;
  const auto add = [&](LayerPtr layer) {
    parts.emplace_back(std::to_string(parts.size()), std::move(layer));
  };
  if (expansion != 1) add(unit(in, within, {}));
  add(unit(within, within, {.kernel = 3, .stride = stride, .groups = within}));
  add(bare_convolution(within, out, {}));
  add(batch_norm(out));
  LayerPtr body = sequence({{"conv", sequence(std::move(parts))}});
  return residual_sum ? residual(std::move(body), nullptr, Activation::Identity) : body;
}

class MobileNetV2 final : public ImageModel {
 public:
  explicit MobileNetV2(Options& options)
      : ImageModel(options, 8, "gbpl_fc", {.size = 224, .classes = 1000}),
        corner_(options.choice("pool", {"global", "top_left_4x4"}, "global",
                               "Part of the last map that the classifier averages: all of it, or "
                               "its top left corner, as published with compressed boundaries.") !=
                "global"),
        linear_std_(options.choice("classifier_init", {"normal", "uniform"}, "normal",
                                   "Initial weights of the classifier. normal: N(0, 0.01), bias 0; "
                                   "uniform: PyTorch's default, as in a layer that replaces a "
                                   "pretrained one.") == "normal"
                        ? kMobileLinearStd
                        : 0) {
    if (!corner_ || (map_size() >= kCorner && map_size() < 2 * kCorner)) return;
    options.problem("pool", concat("is top_left_4x4, which needs a last map of 4 to 7 pixels, so "
                                   "images of 97 to 224; size is ",
                                   size()));
    corner_ = false;
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    const auto add = [&](LayerPtr layer) {
      layer->set_name(concat("features.", all.size()));
      all.push_back(std::move(layer));
    };
    std::int64_t in = scaled(kMobileStemChannels);
    add(unit(channels(), in, {.kernel = 3, .stride = 2}));
    for (const Group& group : kMobileGroups)
      for (std::int64_t i = 0; i < group.blocks; ++i) {
        const std::int64_t out = scaled(group.channels);
        add(inverted_residual(in, out, group.expansion, i == 0 ? group.stride : 1, i > 0));
        in = out;
      }
    add(unit(in, scaled(kLastChannels), {}));
    all.push_back(classifier(scaled(kLastChannels)));
    return all;
  }

  std::vector<std::int64_t> published_balance(int stages) const override {
    if (stages == 3) return {1, 18, 1};
    if (stages == 5) return {1, 2, 4, 12, 1};
    return {};
  }

 private:
  Output output(std::size_t layer) const override {
    if (layer == 0) return {scaled(kMobileStemChannels)};
    std::size_t next = 1;
    for (const Group& group : kMobileGroups) {
      next += static_cast<std::size_t>(group.blocks);
      if (layer < next) return {scaled(group.channels)};
    }
    return layer == next ? Output{scaled(kLastChannels)} : Output{classes(), true};
  }

  /// Side of the last map: five strides of 2, each rounding up.
  std::int64_t map_size() const { return (size() + 31) / 32; }

  LayerPtr classifier(std::int64_t in) const {
    LayerPtr layer =
        sequence({{"pool", corner_ ? average_pool(kCorner, kCorner) : average_pool_to(1)},
                  {"0", dropout(kMobileDropout)},
                  {"1", linear(in, classes(), {.init_std = linear_std_, .flatten = true})}});
    layer->set_name("classifier");
    return layer;
  }

  bool corner_;
  double linear_std_;  ///< 0: PyTorch's default
};

PIPEWRIGHT_MODEL(mobilenet_v2, MobileNetV2, "MobileNetV2 for large images, 20 layers.");

}  // namespace
}  // namespace pipewright
