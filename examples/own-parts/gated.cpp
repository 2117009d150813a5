// SPDX-License-Identifier: Apache-2.0
// A layer, y = (x Aᵀ + a) · σ(x Bᵀ + b), a linear map whose outputs are gated (Dauphin et al.,
// 2017); its kind, so that `model: {name: sequential}` may list it; and a model of such layers.
#include <ATen/ATen.h>

#include <cmath>

#include "core/nn/layer_kind.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

/// [batch, in] to [batch, out]. `weight` [2·out, in] holds A and, below it, B.
class GatedLinear final : public Layer {
 public:
  GatedLinear(std::int64_t in, std::int64_t out) : in_(in), out_(out) {}

  std::vector<ParameterSpec> parameters() const override {
    const double deviation = std::sqrt(2 / static_cast<double>(in_));
    return {{"weight", {2 * out_, in_}, {Initializer::Kind::Normal, deviation}},
            {"bias", {2 * out_}, {}}};
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> /*buffers*/, const Pass& /*pass*/) const override {
    return at::glu(at::linear(input, parameters[0], parameters[1]), 1);
  }

 private:
  std::int64_t in_, out_;
};

class GatedLinearKind final : public LayerKind {
 public:
  explicit GatedLinearKind(Options& options)
      : out_(options.integer("out", 32, "Numbers of the output.", kPositive)) {}

  std::string refusal(const SampleShape& before) const override {
    return before.is_flat() ? "" : "wants features; put flatten before it";
  }
  SampleShape after(const SampleShape& /*before*/) const override { return {{out_}}; }
  LayerPtr make(const SampleShape& before) const override {
    return std::make_shared<GatedLinear>(before.sizes[0], out_);
  }

 private:
  std::int64_t out_;
};

class Gated final : public Model {
 public:
  explicit Gated(Options& options)
      : inputs_(options.integer("inputs", 2, "Numbers of a sample.", kPositive)),
        width_(options.integer("width", 32, "Outputs of each gated layer.", kPositive)),
        depth_(options.integer("depth", 3, "Number of gated layers.", {1, 1000})),
        classes_(options.integer("classes", 2, "Number of classes.", kPositive)) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    for (std::int64_t i = 0; i < depth_; ++i) {
      all.push_back(std::make_shared<GatedLinear>(i == 0 ? inputs_ : width_, width_));
      all.back()->set_name("gated" + std::to_string(i));
    }
    all.push_back(linear(width_, classes_));
    all.back()->set_name("classifier");
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {inputs_}; }
  std::int64_t classes() const override { return classes_; }
  LayerPtr head(std::size_t /*last_layer*/) const override { return linear(width_, classes_); }

 private:
  std::int64_t inputs_, width_, depth_, classes_;
};

PIPEWRIGHT_LAYER(gated_linear, GatedLinearKind, "linear layer with gated outputs: out 32")
PIPEWRIGHT_MODEL(gated, Gated, "Linear layers whose outputs are gated, then a linear classifier.")

}  // namespace
}  // namespace pipewright
