// SPDX-License-Identifier: Apache-2.0
/// The base of image models, with the options `classes`, `channels`, `size`, `width` and
/// `aux_head`, and two layers that several of them use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/model.h"
#include "models/parts/image_head.h"

namespace pipewright {

/// Default values of options.
struct ImageDefaults {
  std::int64_t size = 32, classes = 10;
};

class ImageModel : public Model {
 public:
  std::vector<std::int64_t> input_shape() const final { return {channels_, size_, size_}; }
  std::int64_t classes() const final { return classes_; }
  LayerPtr head(std::size_t last_layer) const final;

 protected:
  /// The form of a layer's output.
  struct Output {
    std::int64_t channels;
    bool flat = false;  ///< [batch, channels] instead of an image
  };

  /// `least_size` is the smallest image size for which all maps have at least one pixel.
  ImageModel(Options& options, std::int64_t least_size, const std::string& aux_head,
             ImageDefaults defaults = {});

  virtual Output output(std::size_t layer) const = 0;

  std::int64_t channels() const { return channels_; }
  std::int64_t size() const { return size_; }
  /// A published number of channels multiplied by `width`, rounded, at least 1.
  std::int64_t scaled(std::int64_t published) const;

 private:
  std::int64_t classes_, channels_, size_;
  double width_;
  ImageHead aux_head_;
};

struct ConvolutionUnitOptions {
  std::int64_t kernel = 3, stride = 1;  ///< padding keeps the size at stride 1
  bool bias = true, batch_norm = true;
  std::int64_t pool = 0, pool_stride = 2, pool_padding = 0;  ///< max-pool kernel; 0 = none
  double dropout = 0;
};
/// Convolution (Kaiming fan-out), batch norm, ReLU, max-pool, dropout as one layer. Parameters
/// "weight", "bias", "bn.weight", "bn.bias".
LayerPtr convolution_unit(std::string name, std::int64_t in, std::int64_t out,
                          ConvolutionUnitOptions options);

/// Global average pool and linear to the classes as one layer; parameters "weight", "bias".
LayerPtr pooled_classifier(std::string name, std::int64_t in, std::int64_t classes,
                           double init_std = 0);

}  // namespace pipewright
