// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr double kMasked = -65504;  ///< least float16 value, as published

enum : std::size_t { kQuery, kKey, kDirection, kScale, kBias };

class AdditiveAttention final : public BoundaryLayer, public Incremental {
 public:
  explicit AdditiveAttention(std::int64_t width) : width_(width) {
    PIPEWRIGHT_CHECK(width > 0, "attention of width ", width);
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    return {{"linear_q.weight", {width_, width_}, {Kind::Uniform, bound}},
            {"linear_k.weight", {width_, width_}, {Kind::Uniform, bound}},
            {"linear_att", {width_}, {Kind::Uniform, bound}},
            {"normalize_scalar", {1}, {Kind::Constant, bound}},
            {"normalize_bias", {width_}, {Kind::Constant, 0}}};
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor>, const Pass&) const override {
    PIPEWRIGHT_CHECK(inputs.size() == 3, "layer '", name(), "' takes three tensors");
    const at::Tensor keys = at::linear(inputs[1], parameters[kKey]);
    return {inputs[0], at::bmm(shares(inputs, keys, parameters), inputs[1])};
  }

  /// Carries the projected keys.
  Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                Carried& carried) const override {
    if (carried.tensors.empty()) carried.tensors = {at::linear(inputs[1], parameters[kKey])};
    const at::Tensor all = shares(inputs, carried.tensors[0], parameters);
    carried.attention = all.select(1, -1);
    return {inputs[0], at::bmm(all, inputs[1])};
  }

 private:
  /// The attention weights [n, T, S]. Multiplies with a first and divides by |a| afterwards, so
  /// that a backward with other installed weights uses those everywhere but in that one number.
  static at::Tensor shares(const Tensors& inputs, const at::Tensor& keys,
                           std::span<const at::Tensor> p) {
    const at::Tensor queries = at::linear(inputs[0], p[kQuery], p[kBias]);
    const at::Tensor sums = (queries.unsqueeze(2) + keys.unsqueeze(1)).tanh_();
    const at::Tensor scores = at::matmul(sums, p[kDirection]) * p[kScale] / p[kDirection].norm();
    const at::Tensor& lengths = inputs[2];
    const at::Tensor place = at::arange(keys.size(1), lengths.options()).unsqueeze(0);
    const at::Tensor beyond = place >= lengths.unsqueeze(1);
    return at::softmax(scores.masked_fill(beyond.unsqueeze(1), kMasked), -1, at_least_float(scores))
        .to(scores.scalar_type());
  }

  std::int64_t width_;
};

}  // namespace

LayerPtr additive_attention(std::int64_t width) {
  return std::make_shared<AdditiveAttention>(width);
}

}  // namespace pipewright
