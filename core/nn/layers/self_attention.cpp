// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers/attention_core.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class SelfAttention final : public Layer {
 public:
  SelfAttention(std::int64_t width, std::int64_t heads, double dropout_probability)
      : width_(width), heads_(heads), core_(heads, {.dropout = dropout_probability}) {
    PIPEWRIGHT_CHECK(width > 0 && heads > 0 && width % heads == 0, "self-attention of width ",
                     width, " with ", heads, " heads");
  }

  void set_name(std::string name) override {
    core_.set_name(name);
    Layer::set_name(std::move(name));
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    const auto width = static_cast<double>(width_);
    const Initializer xavier{Kind::Uniform, std::sqrt(6 / (width + 3 * width))};
    return {{"in_proj_weight", {3 * width_, width_}, xavier},
            {"in_proj_bias", {3 * width_}, {Kind::Constant, 0}},
            {"out_proj.weight", {width_, width_}, {Kind::Uniform, 1 / std::sqrt(width)}},
            {"out_proj.bias", {width_}, {Kind::Constant, 0}}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass& pass) const override {
    const std::int64_t batch = input.size(0), tokens = input.size(1);
    const at::Tensor projected = at::linear(input, parameters[0], parameters[1]);
    const auto qkv = projected.view({batch, tokens, 3, heads_, width_ / heads_})
                         .permute({2, 0, 3, 1, 4})  // [3, batch, heads, tokens, width / heads]
                         .unbind();
    const at::Tensor mixed = core_.attend(qkv[0], qkv[1], qkv[2], {}, pass);
    return at::linear(AttentionCore::join(mixed), parameters[2], parameters[3]);
  }

 private:
  std::int64_t width_, heads_;
  AttentionCore core_;
};

}  // namespace

LayerPtr self_attention(std::int64_t width, std::int64_t heads, double dropout_probability) {
  return std::make_shared<SelfAttention>(width, heads, dropout_probability);
}

}  // namespace pipewright
