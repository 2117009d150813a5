// SPDX-License-Identifier: Apache-2.0
#include "models/parts/image_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/nn/layers.h"

namespace pipewright {

ImageModel::ImageModel(Options& options, std::int64_t least_size, const std::string& aux_head,
                       ImageDefaults defaults)
    : classes_(options.integer("classes", defaults.classes, "Number of classes.", {1, 1e9})),
      channels_(options.integer(
          "channels", 3, "Number of channels of the images: 3 for colour, 1 for grey.", {1, 1e6})),
      size_(options.integer("size", defaults.size, "Height and width of the images, in pixels.",
                            {static_cast<double>(least_size), 1e6})),
      width_(options.number("width", 1,
                            "Factor by which the number of channels of every layer is multiplied "
                            "(rounded, at least 1).",
                            {1e-3, 1e3})),
      aux_head_(options, aux_head) {}

LayerPtr ImageModel::head(std::size_t last_layer) const {
  const Output from = output(last_layer);
  return from.flat ? ImageHead::on_features(from.channels, classes_)
                   : aux_head_.on_image(from.channels, classes_);
}

std::int64_t ImageModel::scaled(std::int64_t published) const {
  return std::max<std::int64_t>(1, std::llround(width_ * static_cast<double>(published)));
}

LayerPtr convolution_unit(std::string name, std::int64_t in, std::int64_t out,
                          ConvolutionUnitOptions options) {
  std::vector<std::pair<std::string, LayerPtr>> parts;
  parts.emplace_back("", convolution(in, out,
                                     {.kernel = options.kernel,
                                      .stride = options.stride,
                                      .padding = options.kernel / 2,
                                      .bias = options.bias}));
  if (options.batch_norm) parts.emplace_back("bn", batch_norm(out));
  parts.emplace_back("", activation(Activation::Relu, /*in_place=*/true));
  if (options.pool > 0)
    parts.emplace_back("", max_pool(options.pool, options.pool_stride, options.pool_padding));
  if (options.dropout > 0) parts.emplace_back("dropout", dropout(options.dropout));
  LayerPtr unit = sequence(std::move(parts));
  unit->set_name(std::move(name));
  return unit;
}

LayerPtr pooled_classifier(std::string name, std::int64_t in, std::int64_t classes,
                           double init_std) {
  LayerPtr unit = sequence({{"", average_pool_to(1)},
                            {"", linear(in, classes, {.init_std = init_std, .flatten = true})}});
  unit->set_name(std::move(name));
  return unit;
}

}  // namespace pipewright
