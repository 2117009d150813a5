// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class LayerNorm final : public Layer {
 public:
  LayerNorm(std::int64_t width, double eps) : width_(width), eps_(eps) {
    PIPEWRIGHT_CHECK(width > 0, "layer norm of width ", width);
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    return {{.name = "weight", .shape = {width_}, .init = {Kind::Constant, 1}, .exact = true},
            {.name = "bias", .shape = {width_}, .init = {Kind::Constant, 0}, .exact = true}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    if (input.is_meta())
      return made_on_meta({input, parameters[0], parameters[1]}, at::empty_like(input),
                          {input, at::empty({2, input.numel() / width_}, parameters[0].options())});
    return layer_norm_in_two_formats(input, parameters[0], parameters[1], eps_);
  }

 private:
  std::int64_t width_;
  double eps_;
};

}  // namespace

LayerPtr layer_norm(std::int64_t width, double eps) {
  return std::make_shared<LayerNorm>(width, eps);
}

}  // namespace pipewright
