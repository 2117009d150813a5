// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of optimizers: the flat weights and optimizer state of a stage, without a
/// stage.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/stage/weight_store.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/optim/optimizers_elsewhere.h"

namespace pipewright::test {

/// Float64 weights of a 3×5 and a 7-element parameter, with an optimizer's state.
struct Training {
  explicit Training(const Optimizer& with, bool predicts = false, bool keep_gradient = false,
                    const FlatLayout& of = flat_layout({{"a", {3, 5}}, {"b", {7}}}, 8))
      : optimizer(with),
        layout(of),
        state(fresh_state(with, layout, at::kDouble, predicts, keep_gradient)),
        weights(at::zeros({layout.size}, at::kDouble)) {
    for (std::size_t p = 0; p < layout.entries.size(); ++p)
      part(weights, p).copy_(random(layout.entries[p].shape, 100 + p));
  }

  at::Tensor part(const at::Tensor& flat, std::size_t p) const {
    const FlatLayout::Entry& entry = layout.entries[p];
    return flat.narrow(0, entry.offset, entry.size).view(entry.shape);
  }
  std::vector<at::Tensor> gradients(std::uint64_t step) const {
    std::vector<at::Tensor> all;
    for (std::size_t p = 0; p < layout.entries.size(); ++p)
      all.push_back(random(layout.entries[p].shape, 10 * step + p));
    return all;
  }
  void step(const std::vector<at::Tensor>& of, double lr = 0.1) {
    optimizer.step({.layout = layout,
                    .gradients = of,
                    .weights = weights,
                    .next = weights,
                    .state = state,
                    .lr = lr});
  }
  at::Tensor predicted(int steps, PredictionRule rule = {}, double lr = 0.1) const {
    at::Tensor ahead = at::empty_like(weights);
    predict(optimizer, {.weights = weights,
                        .ahead = ahead,
                        .state = state,
                        .rule = rule,
                        .steps = steps,
                        .lr = lr});
    return ahead;
  }

  const Optimizer& optimizer;
  FlatLayout layout;
  OptimizerState state;
  at::Tensor weights;
};

inline void expect_near(const at::Tensor& a, const at::Tensor& b, double tolerance,
                        const std::string& what = "") {
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance) << what;
}

/// Every optimizer whose rule is elementwise, with options that reach each of its terms.
inline const std::vector<std::pair<std::string, std::string>> kElementwise{
    {"sgd", "{}"},
    {"sgd", "{momentum: 0.9}"},
    {"sgd", "{weight_decay: 0.1}"},
    {"sgd", "{momentum: 0.9, dampening: 0.3, weight_decay: 0.1}"},
    {"sgd", "{momentum: 0.8, nesterov: true, weight_decay: 0.1}"},
    {"adam", "{}"},
    {"adam", "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.1}"},
    {"adamw", "{}"},
    {"adamw", "{betas: [0.8, 0.9], weight_decay: 0.5}"},
    {"rmsprop", "{}"},
    {"rmsprop", "{alpha: 0.8, eps: 0.001, momentum: 0.7, weight_decay: 0.1}"},
    {"spike_compensation", "{}"},
    {"spike_compensation", "{momentum: 0.8, delay: 3, weight_decay: 0.1}"},
    {"lion", "{}"},
    {"lion", "{betas: [0.8, 0.95], weight_decay: 0.1}"},
    {"nadamw", "{}"},
    {"nadamw", "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.5, momentum_decay: 0.3}"},
    {"adan", "{}"},
    {"adan", "{betas: [0.9, 0.8, 0.95], eps: 0.001, weight_decay: 0.5}"},
    {"adan", "{weight_decay: 0.5, proximal: false}"},
};

/// Every optimizer that sees matrices, likewise.
inline const std::vector<std::pair<std::string, std::string>> kOfMatrices{
    {"muon", "{}"},
    {"muon",
     "{nesterov: false, momentum: 0.8, weight_decay: 0.5, adjust_lr: match_rms_adamw, "
     "adamw: {betas: [0.8, 0.9], eps: 0.001, lr_factor: 0.5}}"},
    {"soap", "{}"},
    {"soap",
     "{betas: [0.8, 0.9], shampoo_beta: 0.7, eps: 0.001, weight_decay: 0.5, "
     "precondition_frequency: 1, max_precond_dim: 300}"},
};

inline const std::vector<std::pair<std::string, std::string>> kOptimizers = [] {
  auto all = kElementwise;
  all.insert(all.end(), kOfMatrices.begin(), kOfMatrices.end());
  return all;
}();

/// Updates after which the optimizer has moved a weight: SOAP's first one makes its bases only.
inline std::uint64_t updates_to_move(const std::string& optimizer) {
  return optimizer == "soap" ? 2 : 1;
}

}  // namespace pipewright::test
