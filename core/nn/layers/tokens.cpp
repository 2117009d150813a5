// SPDX-License-Identifier: Apache-2.0
/// Layers over token ids (positions, types, masks), and the selection of a text's first token.
#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Positions final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& ids, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass& pass) const override {
    const std::int64_t first = pass.slice * ids.size(1);
    return at::arange(first, first + ids.size(1), ids.options()).unsqueeze(0);
  }
};

class MaskPadding final : public BoundaryLayer {
 public:
  explicit MaskPadding(std::int64_t padding) : padding_(padding) {}

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    Tensors outputs = inputs;
    outputs.push_back(inputs[0].ne(padding_));
    return outputs;
  }

  SkipUse skips() const override { return {.puts = 1, .gradients = false}; }

 private:
  std::int64_t padding_;
};

/// For the rows of the identity a linear layer gives the columns of its weight plus its bias, so
/// nothing is multiplied.
class LinearOfPositions final : public Composite {
 public:
  LinearOfPositions(std::int64_t positions, std::int64_t width, LinearOptions options) {
    PIPEWRIGHT_CHECK(options.bias && options.activation == Activation::Identity,
                     "a linear layer of positions with other than its bias");
    add(linear(positions, width, options), "");
  }

  at::Tensor forward(const at::Tensor& ids, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    return (parameters[0].narrow(1, 0, ids.size(1)).t() + parameters[1]).unsqueeze(0);
  }
};

class FirstToken final : public BoundaryLayer {
 public:
  explicit FirstToken(int others) : others_(others) {}

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    return {inputs[0].select(1, 0)};
  }

  SkipUse skips() const override { return {.takes = others_}; }

 private:
  int others_;
};

}  // namespace

LayerPtr positions() {
  return std::make_shared<Positions>();
}

LayerPtr positions_of_words(std::int64_t padding) {
  return layer_of([padding](const at::Tensor& ids) {
    const at::Tensor words = ids.ne(padding).to(at::kLong);
    return words.cumsum(1) * words + padding;
  });
}

LayerPtr token_types() {
  return layer_of([](const at::Tensor& ids) { return at::zeros({1, 1}, ids.options()); });
}

LayerPtr linear_of_positions(std::int64_t positions, std::int64_t width, LinearOptions options) {
  return std::make_shared<LinearOfPositions>(positions, width, options);
}

LayerPtr mask_padding(std::int64_t padding) {
  return std::make_shared<MaskPadding>(padding);
}

LayerPtr first_token(int others) {
  return std::make_shared<FirstToken>(others);
}

}  // namespace pipewright
