// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of stages: one stage by itself, and its weights as tensors.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "core/stage/stage.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/optim/optimizers_elsewhere.h"

namespace pipewright::test {

/// A gradient rule with the options `text`.
inline std::shared_ptr<const GradientRule> made_rule(const std::string& name,
                                                     const std::string& text) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "gradient_rules", problems);
  std::shared_ptr<const GradientRule> rule =
      Registry<GradientRule>::instance().find(name)->make(options);
  options.finish();
  for (const Error& problem : problems.errors()) ADD_FAILURE() << problem.what();
  return rule;
}

class StageTest : public testing::Test {
 protected:
  /// The layers with the names `first`, `first` + 1, …
  static std::vector<LayerPtr> named(std::vector<LayerPtr> layers, int first = 0) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i]->set_name(std::to_string(first + static_cast<int>(i)));
    return layers;
  }

  Stage stage(std::vector<LayerPtr> layers, bool last = false, LayerPtr head = nullptr,
              bool predicts = false) const {
    if (head) head->set_name("heads.0");
    return Stage({.last = last,
                  .layers = named(std::move(layers)),
                  .head = std::move(head),
                  .options = at::kDouble,
                  .optimizer = optimizer_.get(),
                  .loss = loss_.get(),
                  .predicts = predicts},
                 1);
  }

  /// A parameter or buffer of that name.
  static at::Tensor value(const Stage& stage, const std::string& name) {
    for (const auto& [each, tensor] : stage.named_state())
      if (each == name) return tensor.clone();
    ADD_FAILURE() << "there is no " << name;
    return {};
  }

  std::unique_ptr<Optimizer> optimizer_ = make_optimizer("sgd", "{momentum: 0.9}");
  std::unique_ptr<Loss> loss_ = [] {
    Problems problems;
    Options options(nullptr, "loss", problems);
    return Registry<Loss>::instance().find("cross_entropy")->make(options);
  }();
  at::Tensor x_ = random({4, 3}, 1), y_ = at::tensor({0, 1, 0, 1}, at::kLong);
  PredictionRule rule_;
};

}  // namespace pipewright::test
