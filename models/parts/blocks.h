/// Image models written as blocks: parts that are made once it is known how many channels go in,
/// so that a model's tables say only what comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {

/// What a block makes: a layer and the channels that come out of it.
struct Made {
  LayerPtr layer;
  std::int64_t channels;
  bool flat = false;  ///< [batch, channels] instead of an image
};
using Block = std::function<Made(std::int64_t in)>;
/// Named as sequence() and concatenate() name their parts.
using Blocks = std::vector<std::pair<std::string, Block>>;

/// One after another.
Block chain(Blocks blocks);
/// On one input, outputs joined along the channels.
Block branches(Blocks blocks);
/// A layer that leaves the number of channels as it is; nullptr, the input itself in branches().
Block keeping_channels(std::function<LayerPtr()> make);
/// Batch norm, ReLU; the norm's parameters are under `name`.
Block norm_relu(const std::string& name);

struct ConvolutionBlockOptions {
  std::int64_t kernel = 1, stride = 1;
  std::optional<std::int64_t> kernel_width;  ///< where it differs from the height's
  bool pad = true;  ///< by half the kernel, which keeps the size at stride 1; else by nothing
  bool bias = false;
  double eps = 1e-5;                  ///< of the batch norm
  std::optional<Initializer> weight;  ///< in place of Kaiming's (fan out)
};
/// Convolution, batch norm, ReLU; parameters "conv.weight", "conv.bias", "bn.weight", "bn.bias".
Block convolution_block(std::int64_t out, ConvolutionBlockOptions options);

/// Global average pool, dropout, linear to the classes; parameters "weight", "bias".
Block classifier_block(std::int64_t classes, double dropout_probability, LinearOptions options);

/// An image model that is one block after another, each of which is a layer.
class BlockModel : public ImageModel {
 public:
  std::vector<LayerPtr> layers() const final;

 protected:
  using ImageModel::ImageModel;

  /// Under the layers' names.
  virtual Blocks blocks() const = 0;

 private:
  std::vector<Made> made() const;
  Output output(std::size_t layer) const final;
};

}  // namespace pipewright
