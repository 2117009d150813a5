// SPDX-License-Identifier: Apache-2.0
// Muon (Jordan et al., 2024; Liu et al., 2025, arXiv 2502.16982) as PyTorch's, for parameters of
// two dimensions or more:
//   B ← μB + (1−μ)G;  B̃ = (1−μ)G + μB with Nesterov, else B;  O = NS(B̃) · r
//   W ← (1 − lr·λ)W − lr·O
// NS brings all singular values near 1: X ← B̃/‖B̃‖; then X ← aX + (b XXᵀ + c(XXᵀ)²)X, five times.
// PyTorch rounds X to bfloat16 for that; here it keeps the number format of the weights. r is
// √max(1, rows/columns) or, to move weights as much as AdamW does, 0.2·√max(rows, columns).
// All other parameters take AdamW's step with the factor `adamw.lr_factor`, and the same decay.
//
// A prediction goes along the last step: Ŵ = W − s·lr·O. The momentum B would be the wrong
// direction, because steps do not grow with it.
#include <algorithm>
#include <cmath>

#include "core/base/wording.h"
#include "core/optim/betas.h"
#include "core/optim/by_parameter.h"
#include "core/optim/momentum.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

/// A list of names; Optimizer::named_layers() has them looked for in the model.
std::vector<std::string> read_layer_list(Options& options, const std::string& name,
                                         const std::string& help) {
  const Value given = options.any(name, Value::sequence(), help);
  std::vector<std::string> layers;
  if (!given.is(Value::Kind::Sequence))
    options.problem(
        name, concat("is ", given.shown(), "; expected a list of layers such as [classifier]"));
  for (std::size_t i = 0; i < given.items.size(); ++i) {
    const Value& layer = given.items[i];
    if (layer.is(Value::Kind::Text))
      layers.push_back(layer.text);
    else
      options.problem(concat(name, "[", i, "]"),
                      concat("is ", layer.shown(), "; expected the name of a layer"));
  }
  return layers;
}

/// Whether the parameter is one of these layers'.
bool is_of_layers(const FlatLayout::Entry& parameter, const std::vector<std::string>& layers) {
  return std::ranges::any_of(layers, [&](const std::string& layer) {
    return parameter.name.starts_with(layer) && parameter.name.size() > layer.size() &&
           parameter.name[layer.size()] == '.';
  });
}

class Muon final : public MomentumByDelay<Muon> {
 public:
  explicit Muon(Options& options)
      : MomentumByDelay(options, 1e-3),
        momentum_(read_momentum(options, 0.95)),
        nesterov_(options.flag("nesterov", true,
                               "Whether the matrix that is orthogonalised is the momentum after "
                               "one more step with the same gradient.")),
        decay_(options, 0.1,
               "Decoupled weight decay λ: weights shrink by the factor 1 − lr·λ per step."),
        coefficients_(options.numbers(
            "ns_coefficients", usual_coefficients(),
            "Coefficients a, b, c of the Newton–Schulz iteration X ← aX + (b XXᵀ + c(XXᵀ)²)X.")),
        iterations_(static_cast<int>(options.integer(
            "ns_steps", 5, "Number of Newton–Schulz iterations of each step.", {0, 99}))),
        eps_(options.number("eps", 1e-7, "Least norm that a matrix is divided by.", {1e-38, 1})),
        like_adamw_(options.choice("adjust_lr", {"original", "match_rms_adamw"}, "original",
                                   "Factor of a matrix's steps. original: √max(1, rows/columns); "
                                   "match_rms_adamw: 0.2·√max(rows, columns), with which a "
                                   "learning rate of AdamW fits.") == "match_rms_adamw") {
    read_by_delay(options, "momentum", momentum_);
    if (coefficients_.size() != 3) {
      options.problem("ns_coefficients",
                      concat("has ", counted(coefficients_.size(), "number"), "; expected three"));
      coefficients_ = usual_coefficients();
    }
    Options adamw = options.section(
        "adamw", "AdamW, which steps biases and other parameters of one dimension.");
    betas_ = read_betas(adamw, {0.9, 0.999},
                        "Decay factors of the running means of the gradient and of its square.");
    adamw_eps_ =
        adamw.number("eps", 1e-8, "Number ε that is added to the denominator.", kNotNegative);
    lr_factor_ = adamw.number("lr_factor", 1,
                              "Factor of the learning rate for these parameters; their weight "
                              "decay keeps its strength lr·λ.",
                              kNotNegative);
    layers_ = read_layer_list(
        adamw, "layers",
        "Layers, or modules within them, all of whose parameters AdamW steps, as Muon's authors "
        "advise for embeddings and classifiers: [classifier].");
    adamw.finish();
  }

  double& own_momentum() { return momentum_; }
  std::vector<std::string> slot_names(bool predicts) const override {
    if (predicts) return {"momentum_buffer", "last_step"};
    return {"momentum_buffer"};
  }
  int slots_predicted_from() const override { return 1; }

  std::vector<StateTable> tables(bool) const override {
    return {{"exp_avg_sq", [this](const FlatLayout::Entry& entry) {
               return is_matrix(entry) ? std::nullopt : std::optional(entry.shape);
             }}};
  }
  NamedLayers named_layers() const override { return {"adamw.layers", layers_}; }

  void step(const OptimizerStep& s) const override {
    ++s.state.steps;
    step_by_parameter(s, [&](const ParameterStep& one) {
      const at::Tensor direction = is_matrix(one.entry) ? of_matrix(s, one) : of_adamw(s, one);
      if (s.state.slots.size() > 1) one.entry.view(s.state.slots[1]).copy_(direction);
      return at::sub(one.weights * (1 - s.lr * decay_.of(one.entry)), direction, s.lr);
    });
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    predict_along(p, range, p.state.slots[1], decay_.most());
  }

 private:
  /// The authors' coefficients, which soon bring all singular values to between 0.7 and 1.2.
  static std::vector<double> usual_coefficients() { return {3.4445, -4.7750, 2.0315}; }

  bool is_matrix(const FlatLayout::Entry& entry) const {
    return entry.shape.size() > 1 && !is_of_layers(entry, layers_);
  }

  /// r · NS(B̃).
  at::Tensor of_matrix(const OptimizerStep& s, const ParameterStep& one) const {
    at::Tensor momentum = one.entry.view(s.state.slots[0]);
    momentum.lerp_(one.gradient, 1 - momentum_);
    const at::Tensor ahead = nesterov_ ? one.gradient.lerp(momentum, momentum_) : momentum;
    const at::Tensor matrix = as_matrix(ahead);
    const auto rows = static_cast<double>(matrix.size(0)),
               columns = static_cast<double>(matrix.size(1));
    const double factor = like_adamw_ ? 0.2 * std::sqrt(std::max(rows, columns))
                                      : std::sqrt(std::max(1.0, rows / columns));
    return orthogonalized(matrix).mul_(factor).reshape(one.entry.shape);
  }

  at::Tensor orthogonalized(const at::Tensor& matrix) const {
    const bool tall = matrix.size(0) > matrix.size(1);
    at::Tensor x = tall ? matrix.t() : matrix;
    x = x / x.norm().clamp_min(eps_);
    for (int i = 0; i < iterations_; ++i) {
      const at::Tensor gram = at::mm(x, x.t());
      const at::Tensor bent = at::addmm(gram, gram, gram, coefficients_[1], coefficients_[2]);
      x = at::addmm(x, bent, x, coefficients_[0]);
    }
    return tall ? x.t().contiguous() : x;
  }

  /// lr_factor · m̂/(√û + ε), with m in the slot of the momentum.
  at::Tensor of_adamw(const OptimizerStep& s, const ParameterStep& one) const {
    at::Tensor mean = one.entry.view(s.state.slots[0]), square = s.state.tables[0][one.index];
    mean.lerp_(one.gradient, 1 - betas_[0]);
    square.mul_(betas_[1]).addcmul_(one.gradient, one.gradient, 1 - betas_[1]);
    const auto t = static_cast<double>(s.state.steps);
    const double root2 = std::sqrt(1 - std::pow(betas_[1], t));
    return (mean / (square.sqrt().div_(root2).add_(adamw_eps_)))
        .mul_(lr_factor_ / (1 - std::pow(betas_[0], t)));
  }

  double momentum_;
  bool nesterov_;
  WeightDecay decay_;
  std::vector<double> coefficients_;
  int iterations_;
  double eps_;
  bool like_adamw_;
  std::vector<double> betas_;
  double adamw_eps_ = 0, lr_factor_ = 1;
  std::vector<std::string> layers_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(muon, Muon,
                     "Muon; steps of matrices are orthogonalised, other parameters take AdamW's.")

}  // namespace pipewright
