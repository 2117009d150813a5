// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Embedding final : public Layer {
 public:
  Embedding(std::int64_t tokens, std::int64_t width, EmbeddingOptions options)
      : tokens_(tokens), width_(width), options_(options) {
    PIPEWRIGHT_CHECK(tokens > 0 && width > 0 && options.zero_row < tokens, "embedding of ", tokens,
                     " tokens as ", width, " numbers, row ", options.zero_row, " zero");
  }

  std::vector<ParameterSpec> parameters() const override {
    Initializer init{Initializer::Kind::Normal, options_.init_std};
    init.zero_row = options_.zero_row;
    return {{"weight", {tokens_, width_}, init}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    if (input.is_meta()) {
      std::vector<std::int64_t> shape = input.sizes().vec();
      shape.push_back(width_);
      return made_on_meta({parameters[0]}, at::empty(shape, parameters[0].options()), {input});
    }
    return at::embedding(parameters[0], input, options_.zero_row);
  }

 private:
  std::int64_t tokens_, width_;
  EmbeddingOptions options_;
};

}  // namespace

LayerPtr embedding(std::int64_t tokens, std::int64_t width, EmbeddingOptions options) {
  return std::make_shared<Embedding>(tokens, width, options);
}

}  // namespace pipewright
