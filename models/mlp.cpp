// SPDX-License-Identifier: Apache-2.0
/// The multilayer perceptron: small and exactly specified, so that independent checks can compute
/// it by hand. Parameters are "<i>.weight" [widths[i+1], widths[i]] and "<i>.bias" under every cut.
#include <string>
#include <vector>

#include "core/stage/layers.h"
#include "core/stage/model.h"

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
                           "Activation between layers; none follows the last one."))) {
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
      const bool last = i + 2 == widths_.size();
      all.push_back(
          linear(widths_[i], widths_[i + 1],
                 {.activation = last ? Activation::Identity : activation_, .flatten = i == 0}));
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
  static Activation activation_named(const std::string& name) {
    if (name == "tanh") return Activation::Tanh;
    return name == "identity" ? Activation::Identity : Activation::Relu;
  }

  std::vector<std::int64_t> widths_;
  Activation activation_;
};

PIPEWRIGHT_MODEL(mlp, Mlp, "Multilayer perceptron: linear layers with an activation between them.");

}  // namespace
}  // namespace pipewright
