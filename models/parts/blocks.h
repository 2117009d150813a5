// SPDX-License-Identifier: Apache-2.0
/// Image models written as blocks. A block makes its layer once the number of input channels is
/// known, so that a model's tables give output channels only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {

/// The result of a block: a layer and its output channels.
struct Made {
  LayerPtr layer;
  std::int64_t channels;
  bool flat = false;  ///< [batch, channels] instead of an image
};
using Block = std::function<Made(std::int64_t in)>;
/// Blocks with their names; they name parameters as in sequence() and concatenate().
using Blocks = std::vector<std::pair<std::string, Block>>;

/// Runs the blocks one after another.
Block chain(Blocks blocks);
/// Runs the blocks on one input and concatenates their outputs along the channels.
Block branches(Blocks blocks);
/// A block whose layer keeps the number of channels. In branches(), a null layer stands for the
/// input itself.
Block keeping_channels(std::function<LayerPtr()> make);
/// Batch norm, then ReLU; the norm's parameters are under `name`.
Block norm_relu(const std::string& name);

struct ConvolutionBlockOptions {
  std::int64_t kernel = 1, stride = 1;
  std::optional<std::int64_t> kernel_width;  ///< by default as along the height
  bool pad = true;  ///< pads by half the kernel, which keeps the size at stride 1
  bool bias = false;
  double eps = 1e-5;                  ///< epsilon of the batch norm
  std::optional<Initializer> weight;  ///< replaces Kaiming normal (fan out)
};
/// Convolution, batch norm, ReLU; parameters "conv.weight", "conv.bias", "bn.weight", "bn.bias".
Block convolution_block(std::int64_t out, ConvolutionBlockOptions options);

/// Global average pool, dropout, linear to the classes; parameters "weight", "bias".
Block classifier_block(std::int64_t classes, double dropout_probability, LinearOptions options);

/// An image model that consists of consecutive blocks; each block is a layer.
class BlockModel : public ImageModel {
 public:
  std::vector<LayerPtr> layers() const final;

 protected:
  using ImageModel::ImageModel;

  /// The blocks, with the layers' names.
  virtual Blocks blocks() const = 0;

 private:
  std::vector<Made> made() const;
  Output output(std::size_t layer) const final;
};

}  // namespace pipewright
