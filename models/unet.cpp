// SPDX-License-Identifier: Apache-2.0
/// U-Net (Ronneberger et al., 2015) as torchgpipe measures it (Kim et al., 2020), with instance
/// norm, leaky ReLU and channel dropout. Every operation is a layer: 241 with 5 convolutions in a
/// cell. The output has one logit per pixel, so train it with `loss: binary_cross_entropy`.
///
///   down1 … down<depth>: a cell, stash, max-pool      C, 2C, 4C, … channels
///   bottom: a cell                                    in the middle twice the channels
///   up<depth> … up1: upsample, concatenate, a cell    half of what down<i> has
///   output: 1×1 convolution to one channel
#include <string>
#include <utility>
#include <vector>

#include "core/base/wording.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

LayerPtr plain_convolution(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return convolution(
      in, out, {.kernel = kernel, .padding = kernel / 2, .bias = false, .kaiming_fan_out = false});
}

/// Builds the list of the model's layers.
class Chain {
 public:
  Chain(std::int64_t channels, std::int64_t cell_convolutions, double dropout)
      : channels_(channels), cell_convolutions_(cell_convolutions), dropout_(dropout) {}

  /// Adds a layer with `channels` output channels; 0: as many as before.
  void add(std::string name, LayerPtr layer, std::int64_t channels = 0) {
    if (channels > 0) channels_ = channels;
    layer->set_name(std::move(name));
    layers.push_back(std::move(layer));
    channels_after.push_back(channels_);
  }

  /// Adds convolutions to `middle` channels, the last one to `out`.
  void add_cell(const std::string& name, std::int64_t middle, std::int64_t out) {
    for (std::int64_t i = 1; i <= cell_convolutions_; ++i) {
      const std::int64_t to = i == cell_convolutions_ ? out : middle;
      add(concat(name, ".conv", i), plain_convolution(channels_, to, 3), to);
      add(concat(name, ".dropout", i), channel_dropout(dropout_));
      add(concat(name, ".norm", i), instance_norm());
      add(concat(name, ".relu", i), activation(Activation::LeakyRelu));
    }
  }

  std::vector<LayerPtr> layers;
  std::vector<std::int64_t> channels_after;

 private:
  std::int64_t channels_, cell_convolutions_;
  double dropout_;
};

class UNet final : public Model {
 public:
  explicit UNet(Options& options)
      : depth_(options.integer("depth", 5, "Number of times that the image is halved.", {1, 12})),
        convolutions_(options.integer("convolutions", 5,
                                      "Number of convolutions in each of the 2·depth + 1 cells.",
                                      {1, 1e4})),
        base_channels_(options.integer("base_channels", 64,
                                       "Number of channels of the first cell, an even number.",
                                       {2, 1e6})),
        channels_(options.integer("channels", 3,
                                  "Number of channels of the images: 3 for colour, 1 for grey.",
                                  {1, 1e6})),
        size_(options.integer("size", 192, "Height and width of the images, in pixels.", {4, 1e6})),
        dropout_(options.number("dropout", 0.1,
                                "Dropout probability of channels after each convolution of a cell.",
                                {0, 0.99})) {
    if (base_channels_ % 2 != 0)
      options.problem("base_channels", concat("is ", base_channels_, "; expected an even number"));
    const std::int64_t least = std::int64_t{2} << depth_;
    if (size_ < least)
      options.problem("size", concat("is ", size_, "; expected at least ", least, ", so that ",
                                     counted(depth_, "halving"), " leave 2 pixels"));
  }

  std::vector<LayerPtr> layers() const override { return chain().layers; }
  std::vector<std::int64_t> input_shape() const override { return {channels_, size_, size_}; }
  std::int64_t classes() const override { return 2; }  // background and foreground

  /// A head with one logit per pixel of the layer's map; the loss compares each with the sample's
  /// target.
  LayerPtr head(std::size_t last_layer) const override {
    return plain_convolution(chain().channels_after.at(last_layer), 1, 1);
  }

  /// torchgpipe's balances of its speed benchmark, for the default model.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (depth_ != 5 || convolutions_ != 5) return {};
    switch (stages) {
      case 2: return {104, 137};
      case 4: return {30, 66, 84, 61};
      case 8: return {16, 27, 31, 44, 22, 57, 27, 17};
      default: return {};
    }
  }

 private:
  /// Channels of down<level> and of the skip connection from it; level 0 has half of level 1's.
  std::int64_t channels_at(std::int64_t level) const { return (base_channels_ << level) / 2; }

  Chain chain() const {
    Chain chain(channels_, convolutions_, dropout_);
    for (std::int64_t level = 1; level <= depth_; ++level) {
      const std::string name = concat("down", level);
      chain.add_cell(name, channels_at(level), channels_at(level));
      chain.add(name + ".stash", stash());
      chain.add(name + ".pool", max_pool(2, 2));
    }
    chain.add_cell("bottom", channels_at(depth_ + 1), channels_at(depth_));
    for (std::int64_t level = depth_; level >= 1; --level) {
      const std::string name = concat("up", level);
      chain.add(name + ".upsample", upsample_nearest(2));
      chain.add(name + ".concatenate", concatenate_stashed(), channels_at(level + 1));
      chain.add_cell(name, channels_at(level - 1), channels_at(level - 1));
    }
    chain.add("output", plain_convolution(channels_at(0), 1, 1), 1);
    return chain;
  }

  std::int64_t depth_, convolutions_, base_channels_, channels_, size_;
  double dropout_;
};

PIPEWRIGHT_MODEL(unet, UNet, "U-Net with a logit per pixel, each operation a layer to cut at.");

}  // namespace
}  // namespace pipewright
