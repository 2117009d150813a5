// SPDX-License-Identifier: Apache-2.0
#include "models/parts/blocks.h"

namespace pipewright {

Block chain(Blocks blocks) {
  return [blocks = std::move(blocks)](std::int64_t in) {
    std::vector<std::pair<std::string, LayerPtr>> parts;
    Made last{nullptr, in};
    for (const auto& [name, block] : blocks) {
      last = block(last.channels);
      parts.emplace_back(name, last.layer);
    }
    return Made{sequence(std::move(parts)), last.channels, last.flat};
  };
}

Block branches(Blocks blocks) {
  return [blocks = std::move(blocks)](std::int64_t in) {
    std::vector<std::pair<std::string, LayerPtr>> parts;
    std::int64_t out = 0;
    for (const auto& [name, block] : blocks) {
      const Made branch = block(in);
      out += branch.channels;
      parts.emplace_back(name, branch.layer);
    }
    return Made{concatenate(std::move(parts)), out};
  };
}

Block keeping_channels(std::function<LayerPtr()> make) {
  return [make = std::move(make)](std::int64_t in) { return Made{make(), in}; };
}

Block norm_relu(const std::string& name) {
  return [name](std::int64_t in) {
    return Made{
        sequence({{name, batch_norm(in)}, {"", activation(Activation::Relu, /*in_place=*/true)}}),
        in};
  };
}

Block convolution_block(std::int64_t out, ConvolutionBlockOptions options) {
  return [=](std::int64_t in) {
    const std::int64_t width = options.kernel_width.value_or(options.kernel);
    LayerPtr conv = convolution(in, out,
                                {.kernel = options.kernel,
                                 .stride = options.stride,
                                 .padding = options.pad ? options.kernel / 2 : 0,
                                 .kernel_width = width,
                                 .padding_width = options.pad ? width / 2 : 0,
                                 .bias = options.bias,
                                 .weight = options.weight});
    return Made{sequence({{"conv", std::move(conv)},
                          {"bn", batch_norm(out, options.eps)},
                          {"", activation(Activation::Relu, /*in_place=*/true)}}),
                out};
  };
}

Block classifier_block(std::int64_t classes, double dropout_probability, LinearOptions options) {
  return [=](std::int64_t in) {
    LinearOptions flattening = options;
    flattening.flatten = true;
    std::vector<std::pair<std::string, LayerPtr>> parts{{"", average_pool_to(1)}};
    if (dropout_probability > 0) parts.emplace_back("dropout", dropout(dropout_probability));
    parts.emplace_back("", linear(in, classes, flattening));
    return Made{sequence(std::move(parts)), classes, true};
  };
}

std::vector<Made> BlockModel::made() const {
  std::vector<Made> all;
  std::int64_t in = channels();
  for (const auto& [name, block] : blocks()) {
    all.push_back(block(in));
    all.back().layer->set_name(name);
    in = all.back().channels;
  }
  return all;
}

std::vector<LayerPtr> BlockModel::layers() const {
  std::vector<LayerPtr> all;
  for (const Made& block : made()) all.push_back(block.layer);
  return all;
}

ImageModel::Output BlockModel::output(std::size_t layer) const {
  const Made made_there = made().at(layer);
  return {made_there.channels, made_there.flat};
}

}  // namespace pipewright
