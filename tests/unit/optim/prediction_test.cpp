// SPDX-License-Identifier: Apache-2.0
// Predictions of weights to come, by every rule.
#include <cmath>
#include <set>
#include <string>

#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using RuleKind = PredictionRule::Kind;

/// After two steps, its rule's direction ready.
Training warm(const Optimizer& optimizer) {
  Training training(optimizer, true, true);
  for (std::uint64_t t = 1; t <= 2; ++t) training.step(training.gradients(t));
  return training;
}

TEST(Prediction, IsTheWeightsThemselvesBeforeTheFirstStep) {
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    Training training(*optimizer, true, true);
    EXPECT_TRUE(at::equal(training.predicted(3), training.weights)) << name << options;
    if (name != "sgd") continue;
    EXPECT_TRUE(at::equal(training.predicted(3, {.kind = RuleKind::Lookahead}), training.weights));
    EXPECT_TRUE(at::equal(training.predicted(3, {.kind = RuleKind::Geometric}), training.weights));
  }
}

TEST(Prediction, ByMomentumGoesAlongTheBuffer) {
  for (const char* options : {"{momentum: 0.9}", "{momentum: 0.9, nesterov: true}"}) {
    const auto optimizer = make_optimizer("sgd", options);
    const Training training = warm(*optimizer);
    expect_near(training.predicted(3), training.weights - 3 * 0.1 * training.state.slots[0],
                tolerance::kPrediction);
  }
}

TEST(Prediction, BackwardsInTimeIsTheSameLine) {
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    const Training training = warm(*optimizer);
    expect_near(training.predicted(-2), 2 * training.weights - training.predicted(2),
                tolerance::kPrediction, name + options);
    EXPECT_FALSE(at::equal(training.predicted(-2), training.weights)) << name << options;
  }
}

TEST(Prediction, OfPlainSgdIsExactForAConstantGradient) {
  const auto optimizer = make_optimizer("sgd", "{}");
  Training training(*optimizer, true);
  const auto constant = training.gradients(1);
  training.step(constant);
  const at::Tensor predicted = training.predicted(4);
  for (int t = 0; t < 4; ++t) training.step(constant);
  expect_near(predicted, training.weights, tolerance::kPrediction);
}

TEST(Prediction, KeepsTheLastStepOfPlainSgdOnlyWhereItIsAskedFor) {
  const auto optimizer = make_optimizer("sgd", "{}");
  EXPECT_EQ(optimizer->slot_names(false).size(), 0u);
  EXPECT_EQ(optimizer->slot_names(true).size(), 1u);
}

TEST(Prediction, ByLookaheadAddsTheLastGradientWithItsDecay) {
  const auto optimizer =
      make_optimizer("sgd", "{momentum: 0.9, dampening: 0.3, weight_decay: 0.1}");
  Training training(*optimizer, true, true);
  training.step(training.gradients(1));
  const at::Tensor before = training.weights.clone();
  const auto gradients = training.gradients(2);
  training.step(gradients);
  const at::Tensor g = gradients[0] + 0.1 * training.part(before, 0);
  const at::Tensor v = training.part(training.state.slots[0], 0),
                   w = training.part(training.weights, 0);
  for (const double decay : {1.0, 0.0})
    expect_near(
        training.part(training.predicted(2, {.kind = RuleKind::Lookahead, .decay = decay}), 0),
        w - 2 * 0.1 * (0.9 * v + decay * (1 - 0.3) * g), tolerance::kPrediction);
}

TEST(Prediction, ByGeometricVelocitySumsPowersOfTheMomentum) {
  const auto optimizer = make_optimizer("sgd", "{momentum: 0.9}");
  const Training training = warm(*optimizer);
  expect_near(training.predicted(3, {.kind = RuleKind::Geometric}),
              training.weights - 0.1 * (0.9 + 0.81 + 0.729) * training.state.slots[0],
              tolerance::kPrediction);
}

/// FTPipe's: what gradients of 0 would do, the second moments standing still.
TEST(Prediction, ByGeometricVelocityOfAdamDecaysItsMean) {
  for (const char* name : {"adam", "adamw"}) {
    const auto optimizer = make_optimizer(name, "{betas: [0.8, 0.9], weight_decay: 0.5}");
    const Training training = warm(*optimizer);
    at::Tensor w = training.weights.clone(), decayed = w.clone();
    for (int j = 1; j <= 3; ++j) {
      const at::Tensor m = std::pow(0.8, j) * training.state.slots[0] / (1 - std::pow(0.8, 2 + j));
      const at::Tensor u = training.state.slots[1] / (1 - std::pow(0.9, 2 + j));
      const at::Tensor step = 0.1 * m / (u.sqrt() + 1e-8);
      w = w - step;
      decayed = decayed * (1 - 0.1 * 0.5) - step;
    }
    expect_near(training.predicted(3, {.kind = RuleKind::Geometric}), w, tolerance::kOptimizerSteps,
                name);
    if (std::string(name) == "adamw") {
      expect_near(training.predicted(3, {.kind = RuleKind::Geometric, .weight_decay = true}),
                  decayed, tolerance::kOptimizerSteps);
    }
  }
}

TEST(Prediction, TakesTheRateOfEachStepIfThereAreSeveral) {
  const std::vector<double> rates{0.1, 0.05, 0.2};
  for (const auto& [name, options] : kOptimizers)
    for (const RuleKind kind : {RuleKind::Optimizer, RuleKind::Geometric}) {
      const auto optimizer = make_optimizer(name, options);
      const Training training = warm(*optimizer);
      const auto predicted = [&](const std::vector<double>& each, double lr) {
        at::Tensor ahead = at::empty_like(training.weights);
        predict(*optimizer, {.weights = training.weights,
                             .ahead = ahead,
                             .state = training.state,
                             .rule = {.kind = kind},
                             .steps = 3,
                             .lr = lr,
                             .rates = each});
        return ahead;
      };
      expect_near(predicted({0.1, 0.1, 0.1}, 7), predicted({}, 0.1), tolerance::kPrediction,
                  name + options);
      EXPECT_FALSE(at::allclose(predicted(rates, 7), predicted({}, 0.1)) &&
                   kind == RuleKind::Optimizer)
          << name << options;
      if (kind == RuleKind::Optimizer) {
        expect_near(predicted(rates, 7), predicted({}, 0.35 / 3), tolerance::kPrediction,
                    name + options);
      }
    }
}

TEST(Prediction, BySgdOverNoStepsIsTheWeightsThemselves) {
  const auto optimizer = make_optimizer("sgd", "{momentum: 0.9}");
  const Training training = warm(*optimizer);
  for (const RuleKind kind : {RuleKind::Optimizer, RuleKind::Geometric})
    EXPECT_TRUE(at::equal(training.predicted(0, {.kind = kind}), training.weights));
}

TEST(Prediction, ByAdamTakesTheCorrectionsOfTheStepsDone) {
  const auto optimizer = make_optimizer("adam", "{}");
  const Training training = warm(*optimizer);
  const at::Tensor m = training.part(training.state.slots[0], 0) / (1 - std::pow(0.9, 2));
  const at::Tensor u = training.part(training.state.slots[1], 0) / (1 - std::pow(0.999, 2));
  expect_near(training.part(training.predicted(3), 0),
              training.part(training.weights, 0) - 3 * 0.1 * m / (u.sqrt() + 1e-8),
              tolerance::kOptimizerSteps);
}

TEST(Prediction, LeavesOutAdamWsDecayUnlessTheRuleAsksForIt) {
  const auto optimizer = make_optimizer("adamw", "{weight_decay: 0.5}");
  const Training training = warm(*optimizer);
  const at::Tensor without = training.predicted(3),
                   with = training.predicted(3, {.weight_decay = true});
  expect_near(with, without - 3 * 0.1 * 0.5 * training.weights, tolerance::kPrediction);
  const auto adam = make_optimizer("adam", "{weight_decay: 0.5}");
  const Training coupled = warm(*adam);
  EXPECT_TRUE(at::equal(coupled.predicted(3), coupled.predicted(3, {.weight_decay = true})));
}

TEST(Prediction, ByRmsPropGoesAlongItsBuffer) {
  const auto optimizer = make_optimizer("rmsprop", "{momentum: 0.7}");
  const Training training = warm(*optimizer);
  expect_near(training.predicted(2), training.weights - 2 * 0.1 * training.state.slots[1],
              tolerance::kPrediction);
}

TEST(Prediction, ByLionGoesAlongTheSignOfItsMomentum) {
  const auto optimizer = make_optimizer("lion", "{weight_decay: 0.5}");
  const Training training = warm(*optimizer);
  const at::Tensor along = 2 * 0.1 * training.state.slots[0].sign();
  expect_near(training.predicted(2), training.weights - along, tolerance::kPrediction);
  expect_near(training.predicted(2, {.weight_decay = true}),
              training.weights - along - 2 * 0.1 * 0.5 * training.weights, tolerance::kPrediction);
}

TEST(Prediction, ByNAdamWTakesTheMeanForTheGradientToCome) {
  const auto optimizer = make_optimizer("nadamw", "{betas: [0.8, 0.9]}");
  const Training training = warm(*optimizer);
  const at::Tensor m = training.part(training.state.slots[0], 0) / (1 - std::pow(0.8, 2)),
                   u = training.part(training.state.slots[1], 0) / (1 - std::pow(0.9, 2));
  expect_near(training.part(training.predicted(3), 0),
              training.part(training.weights, 0) - 3 * 0.1 * m / (u.sqrt() + 1e-8),
              tolerance::kOptimizerSteps);
}

/// A gradient that stays the same makes the same step again, once bias corrections are exact.
TEST(Prediction, IsExactForAConstantGradientWhereTheRuleIsItsOwnStep) {
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"lion", "{}"}, {"adan", "{betas: [0.9, 0.8, 0.95]}"}}) {
    const auto optimizer = make_optimizer(name, options);
    Training training(*optimizer, true);
    const auto constant = training.gradients(1);
    training.step(constant);
    const at::Tensor predicted = training.predicted(4);
    for (int t = 0; t < 4; ++t) training.step(constant);
    expect_near(predicted, training.weights, tolerance::kOptimizerSteps, name);
  }
}

/// From two states that differ in nothing but the learning rate: the step is predicted once more.
TEST(Prediction, OfMatricesRepeatsTheLastStep) {
  for (const auto& [name, options] : kOfMatrices) {
    const auto optimizer = make_optimizer(name, options);
    Training training(*optimizer, true), still(*optimizer, true);
    for (std::uint64_t t = 1; t <= 3; ++t) {
      training.step(training.gradients(t), 0.1);
      still.step(still.gradients(t), t < 3 ? 0.1 : 0.0);
    }
    const double decay = options == "{}" ? (name == "muon" ? 0.1 : 0.01) : 0.5;
    const at::Tensor kept = name == "muon" ? still.weights * (1 - 0.1 * decay) : still.weights;
    const at::Tensor after =
        name == "soap" ? training.weights / (1 - 0.1 * decay) : training.weights;
    const at::Tensor along = kept - after;
    expect_near(training.weights - training.predicted(3), 3 * along, tolerance::kOptimizerSteps,
                name + options);
    expect_near(training.predicted(3) - training.predicted(3, {.weight_decay = true}),
                3 * 0.1 * decay * training.weights, tolerance::kPrediction, name + options);
  }
}

// A kind that an optimizer says it knows is another prediction than its own, and any other kind is
// its own; so no experiment that is accepted has a velocity without effect.
TEST(Prediction, DiffersByKindWhereTheOptimizerSaysSo) {
  std::set<std::string> names;
  for (const auto& [name, options] : kOptimizers) names.insert(name);
  int knowing = 0;
  for (const std::string& name : names) {
    const auto optimizer = make_optimizer(name, name == "sgd" ? "{momentum: 0.9}" : "{}");
    const Training training = warm(*optimizer);
    const at::Tensor own = training.predicted(3);
    for (const RuleKind kind : {RuleKind::Lookahead, RuleKind::Geometric}) {
      knowing += optimizer->predicts_by(kind);
      EXPECT_EQ(at::equal(training.predicted(3, {.kind = kind, .decay = 0.5}), own),
                !optimizer->predicts_by(kind))
          << name;
    }
  }
  EXPECT_EQ(knowing, 4);  // both of sgd, one each of adam and adamw
}

TEST(Prediction, IsAlikeInTheFusedLoopAndOverTensors) {
  for (const char* options :
       {"{momentum: 0.9, weight_decay: 0.1}", "{momentum: 0.9, dampening: 0.2}"}) {
    const auto fused = make_optimizer("sgd", options),
               tensors = make_optimizer_elsewhere("sgd", options);
    const Training a = warm(*fused), b = warm(*tensors);
    for (const RuleKind kind : {RuleKind::Optimizer, RuleKind::Lookahead, RuleKind::Geometric})
      expect_near(a.predicted(3, {.kind = kind}), b.predicted(3, {.kind = kind}),
                  tolerance::kPrediction);
  }
}

}  // namespace
}  // namespace pipewright::test
