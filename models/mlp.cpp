// SPDX-License-Identifier: Apache-2.0
/// The multilayer perceptron: small and exactly specified, so that independent checks can compute
/// it by hand. Parameters are "<i>.weight" [widths[i+1], widths[i]] and "<i>.bias" under every cut,
/// and with `norm: layer` "<i>.norm.weight" and "<i>.norm.bias" [widths[i+1]].
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

class Mlp final : public Model {
 public:
  explicit Mlp(Options& options)
      : widths_(options.integers(
            "widths", {64, 48, 48, 32, 10},
            "Number of inputs, then of outputs of each layer; the last is the number of classes.",
            kPositive)),
        activation_(activation_named(
            options.choice("activation", {"relu", "tanh", "identity"}, "relu",
                           "Activation between layers; none follows the last one."))),
        he_(options.choice("init", {"pytorch", "he"}, "pytorch",
                           "Initial weights. pytorch: as torch.nn.Linear's, uniform within "
                           "1/√inputs, with which deep networks hardly begin to learn; he: normal "
                           "with deviation √(2/inputs) and biases 0 (He et al., 2015).") == "he"),
        normalised_(options.choice("norm", {"none", "layer"}, "none",
                                   "Layer norm before each activation; with it, a deep network "
                                   "learns at the rates of a shallow one.") == "layer") {
    options.choice("head", {"linear"}, "linear",
                   "Auxiliary head of a stage that has a loss of its own: one linear layer.");
    if (widths_.size() < 2) {
      options.problem("widths",
                      "has fewer than two numbers; expected at least those of inputs and classes");
      widths_ = {64, 10};
    }
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    for (std::size_t i = 0; i + 1 < widths_.size(); ++i) {
      all.push_back(layer(i));
      all.back()->set_name(std::to_string(i));
    }
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {widths_.front()}; }
  bool flattens() const override { return true; }
  std::int64_t classes() const override { return widths_.back(); }
  LayerPtr head(std::size_t last_layer) const override {
    return linear(widths_.at(last_layer + 1), classes());
  }

 private:
  LayerPtr layer(std::size_t i) const {
    const bool last = i + 2 == widths_.size(), alone = last || !normalised_;
    LinearOptions options{.activation = last || !alone ? Activation::Identity : activation_,
                          .flatten = i == 0};
    if (he_) {
      const double deviation = std::sqrt(2 / static_cast<double>(widths_[i]));
      options.weight = Initializer{.kind = Initializer::Kind::Normal, .a = deviation};
      options.bias_init = Initializer{};
    }
    LayerPtr product = linear(widths_[i], widths_[i + 1], options);
    if (alone) return product;
    return sequence({{"", std::move(product)},
                     {"norm", layer_norm(widths_[i + 1])},
                     {"activation", pipewright::activation(activation_)}});
  }

  static Activation activation_named(const std::string& name) {
    if (name == "tanh") return Activation::Tanh;
    return name == "identity" ? Activation::Identity : Activation::Relu;
  }

  std::vector<std::int64_t> widths_;
  Activation activation_;
  bool he_, normalised_;
};

PIPEWRIGHT_MODEL(mlp, Mlp, "Multilayer perceptron: linear layers with an activation between them.");

}  // namespace
}  // namespace pipewright
