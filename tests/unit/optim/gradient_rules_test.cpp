// SPDX-License-Identifier: Apache-2.0
// Gradient rules by hand, on the gradient of one small stage and on its updates.
#include "core/optim/gradient_rules/gradient_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/stage/stage_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// A stage of a matrix and a vector, whose gradient and weights are at hand.
struct RuledStage {
  RuledStage(const std::string& name, const std::string& text, double peak = 0.1)
      : layout(flat_layout({{"a", {2, 3}}, {"b", {2}}}, 8)),
        rules({{name, made_rule(name, text)}}, layout.size, at::kDouble),
        peak_lr(peak),
        weights(at::zeros({layout.size}, at::kDouble)),
        read(weights.clone()) {
    for (const FlatLayout::Entry& entry : layout.entries) {
      entry.view(weights).copy_(random(entry.shape, 3));
      entry.view(read).copy_(random(entry.shape, 4));
      gradients.push_back(random(entry.shape, 5));
    }
  }

  std::vector<at::Tensor> ruled(bool stale = true, std::int64_t updates = 1) const {
    std::vector<at::Tensor> result = gradients;
    rules.apply(StageGradientRules::Part::BeforeModel, {.layout = layout,
                                                        .gradients = result,
                                                        .weights = weights,
                                                        .read = stale ? read : weights,
                                                        .updates = updates,
                                                        .peak_lr = peak_lr});
    return result;
  }
  /// W_now − W_read of a parameter.
  at::Tensor gap(std::size_t p) const {
    return layout.entries[p].view(weights) - layout.entries[p].view(read);
  }

  FlatLayout layout;
  StageGradientRules rules;
  double peak_lr;
  at::Tensor weights, read;
  std::vector<at::Tensor> gradients;
};

void expect_each_near(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t p = 0; p < a.size(); ++p)
    EXPECT_LT((a[p] - b[p]).abs().max().item<double>(), tolerance::kPrediction) << p;
}

TEST(Clip, ScalesTheGradientOfAStageToTheNorm) {
  const RuledStage stage("clip", "{norm: 0.5}");
  double squares = 0;
  for (const at::Tensor& gradient : stage.gradients)
    squares += (gradient * gradient).sum().item<double>();
  ASSERT_GT(squares, 1);
  const double factor = 0.5 / (std::sqrt(squares) + 1e-6);
  expect_each_near(stage.ruled(), {stage.gradients[0] * factor, stage.gradients[1] * factor});
}

TEST(Clip, LeavesAShorterGradientAloneToTheBit) {
  const RuledStage stage("clip", "{norm: 100}");
  const auto ruled = stage.ruled();
  for (std::size_t p = 0; p < ruled.size(); ++p)
    EXPECT_TRUE(at::equal(ruled[p], stage.gradients[p]));
}

TEST(Clip, TakesParametersWithoutGradientForZero) {
  RuledStage stage("clip", "{norm: 0.5}");
  stage.gradients[0].reset();
  const auto ruled = stage.ruled();
  EXPECT_FALSE(ruled[0].defined());
  EXPECT_NEAR(ruled[1].norm().item<double>(), 0.5, 1e-6);  // PyTorch adds 10⁻⁶ to the norm
  stage.gradients[1].reset();
  EXPECT_FALSE(stage.ruled()[1].defined());
}

TEST(Clip, KeepsWhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RuledStage stage("clip", "{norm: 0.5}");
  stage.gradients[0].view(-1)[0] = nan;
  EXPECT_TRUE(stage.ruled()[1].isnan().all().item<bool>());
  const RuledStage of("clip", "{norm: 0.5, over: model}");
  std::vector<at::Tensor> all = of.gradients;
  of.rules.apply(StageGradientRules::Part::FromModel, {.layout = of.layout,
                                                       .gradients = all,
                                                       .weights = of.weights,
                                                       .read = of.weights,
                                                       .model_square = nan});
  EXPECT_TRUE(all[1].isnan().all().item<bool>());
}

/// Those behind a rule over the model wait for the norm of the model, too.
TEST(Clip, OverTheModelComparesTheNormThatItIsGiven) {
  const RuledStage of("clip", "{norm: 0.5, over: model}");
  std::vector<at::Tensor> all = of.gradients;
  const RuledGradient gradient{.layout = of.layout,
                               .gradients = all,
                               .weights = of.weights,
                               .read = of.weights,
                               .model_square = 16};
  of.rules.apply(StageGradientRules::Part::BeforeModel, gradient);
  EXPECT_TRUE(at::equal(all[0], of.gradients[0]));
  of.rules.apply(StageGradientRules::Part::FromModel, gradient);
  const double factor = 0.5 / (4 + 1e-6);
  expect_each_near(all, {of.gradients[0] * factor, of.gradients[1] * factor});
}

TEST(DcAsgd, AddsTheSquareTimesTheGap) {
  const RuledStage stage("dc_asgd", "{lambda: 0.3}");
  std::vector<at::Tensor> expected;
  for (std::size_t p = 0; p < 2; ++p) {
    const at::Tensor& g = stage.gradients[p];
    expected.push_back(g + 0.3 * g * g * stage.gap(p));
  }
  expect_each_near(stage.ruled(), expected);
}

/// Near a minimum where losses are g²/2, the square is the curvature, and the correction exact.
TEST(DcAsgd, IsExactWhereTheSquareIsTheCurvature) {
  RuledStage stage("dc_asgd", "{lambda: 1}");
  std::vector<at::Tensor> now;
  for (std::size_t p = 0; p < 2; ++p) {
    const FlatLayout::Entry& entry = stage.layout.entries[p];
    const at::Tensor curvature = random(entry.shape, 9).abs() + 0.1;
    // The gradient at W_read is √curvature, so the minimum lies at W_read − 1/√curvature.
    stage.gradients[p] = curvature.sqrt();
    now.push_back(curvature * (stage.gap(p) + 1 / curvature.sqrt()));
  }
  expect_each_near(stage.ruled(), now);
}

TEST(DcAsgd, DividesByTheRootOfAMeanIfAdaptive) {
  const RuledStage stage("dc_asgd", "{lambda: 0.3, adaptive: true, decay: 0.75, eps: 0.01}");
  stage.ruled();
  std::vector<at::Tensor> expected;
  for (std::size_t p = 0; p < 2; ++p) {
    const at::Tensor& g = stage.gradients[p];
    const at::Tensor mean = (0.75 * 0.25 + 0.25) * g * g;  // of two equal gradients
    expected.push_back(g + 0.3 / (mean + 0.01).sqrt() * g * g * stage.gap(p));
  }
  expect_each_near(stage.ruled(), expected);
}

TEST(GapAware, DividesByTheGapInStepsOfAverageLength) {
  const RuledStage stage("gap_aware", "{decay: 0.75, eps: 0.01}", 0.2);
  const at::Tensor before = random({stage.layout.size}, 11),
                   after = random({stage.layout.size}, 12);
  stage.rules.stepped({.before = before, .after = after, .lr = 0.1});
  stage.rules.stepped({.before = after, .after = before, .updates = 1, .lr = 0.05});
  const at::Tensor first = (before - after) / 0.1, second = (after - before) / 0.05;
  const at::Tensor mean =
      (0.25 * 0.75 * first * first + 0.25 * second * second) / (1 - 0.75 * 0.75);
  std::vector<at::Tensor> expected;
  for (std::size_t p = 0; p < 2; ++p) {
    const at::Tensor length = 0.2 * (stage.layout.entries[p].view(mean).sqrt() + 0.01);
    expected.push_back(stage.gradients[p] / (1 + stage.gap(p).abs() / length));
  }
  expect_each_near(stage.ruled(true, 2), expected);
}

/// A weight that has moved by one step of average length has half its gradient left.
TEST(GapAware, HalvesTheGradientOfAWeightThatHasMovedByOneStep) {
  RuledStage stage("gap_aware", "{eps: 1.0e-30}", 0.1);
  stage.rules.stepped({.before = stage.read, .after = stage.weights, .lr = 0.1});
  expect_each_near(stage.ruled(), {stage.gradients[0] / 2, stage.gradients[1] / 2});
}

/// Updates by 0.1, 0.3 and 0.2, half of whose differences is added: 0.3 + 0.1 and 0.2 − 0.05.
TEST(UpdateFeedback, CorrectsAllUpdatesButTheFirstByHand) {
  const RuledStage stage("error_feedback", "{coefficient: 0.5}");
  const std::vector<double> updates{0.1, 0.3, 0.2}, corrected{0.9, 0.5, 0.35};
  at::Tensor weights = at::ones({stage.layout.size}, at::kDouble);
  for (std::size_t t = 0; t < updates.size(); ++t) {
    const at::Tensor before = weights.clone();
    weights -= updates[t];
    stage.rules.stepped(
        {.before = before, .after = weights, .updates = static_cast<std::int64_t>(t), .lr = 0.1});
    EXPECT_LT((weights - corrected[t]).abs().max().item<double>(), tolerance::kFewOperations) << t;
    EXPECT_LT((stage.rules.slots()[0].second - updates[t]).abs().max().item<double>(),
              tolerance::kFewOperations)
        << t;
  }
}

TEST(UpdateFeedback, WithoutStrengthKeepsAndFollowsNothing) {
  const RuledStage stage("error_feedback", "{coefficient: 0}");
  EXPECT_TRUE(stage.rules.slots().empty());
  EXPECT_FALSE(stage.rules.follow_steps());
  EXPECT_FALSE(stage.rules.correct_steps());
}

/// A stage whose updates are corrected, which is given its gradients instead of passes.
struct CorrectedStage {
  CorrectedStage(const std::string& name, const std::string& options, StageParts with,
                 const std::string& rule = "{}")
      : optimizer(make_optimizer(name, options)), stage(parts(std::move(with), rule), 1) {}

  /// One per parameter, of a 2×3 matrix and of a vector.
  static std::vector<at::Tensor> gradients(std::uint64_t seed) {
    return {random({2, 3}, 2 * seed), random({2}, 2 * seed + 1)};
  }
  void update(const std::vector<at::Tensor>& of, double lr = 0.1, bool in_place = true,
              const std::optional<Stage::Ahead>& ahead = {}) {
    for (std::size_t p = 0; p < of.size(); ++p)
      if (of[p].defined()) stage.gradients()[p] = of[p].to(stage.weights().latest().scalar_type());
    stage.delay_gradients();
    stage.update(in_place, lr, ahead);
  }
  at::Tensor last_update() const { return stage.rule_slots()[0].second; }
  StageParts parts(StageParts with, const std::string& rule) const {
    with.layers = {linear(3, 2)};
    with.layers[0]->set_name("0");
    with.optimizer = optimizer.get();
    with.gradient_rules = {{"error_feedback", made_rule("error_feedback", rule)}};
    return with;
  }

  std::unique_ptr<Optimizer> optimizer;
  Stage stage;
};

/// Every optimizer at a rate that changes, with a prediction from each corrected version. A
/// parameter that has no gradient once is corrected as any other.
TEST(UpdateFeedback, CorrectsWhatTheOptimizerDoesAtTheCorrectedWeights) {
  constexpr double kCoefficient = 0.75;
  for (const auto& [name, options] : kOptimizers)
    for (const bool in_place : {true, false}) {
      const std::string what = concat(name, options, in_place ? " in place" : "");
      CorrectedStage corrected(name, options, {.options = at::kDouble, .predicts = true},
                               "{coefficient: 0.75}");
      const auto optimizer = make_optimizer(name, options);
      Training by_hand(*optimizer, true, false, corrected.stage.layout());
      by_hand.weights.copy_(corrected.stage.weights().latest());
      at::Tensor last;
      for (int t = 0; t < 4; ++t) {
        const double lr = 0.1 / (1 + t);
        auto gradients = CorrectedStage::gradients(static_cast<std::uint64_t>(t));
        if (t == 2) gradients[1].reset();
        const at::Tensor before = by_hand.weights.clone();
        by_hand.step(gradients, lr);
        const at::Tensor update = before - by_hand.weights;
        if (t > 0) by_hand.weights -= kCoefficient * (update - last);
        last = update;
        const WeightKey ahead{t + 1, 2, 0};
        corrected.update(gradients, lr, in_place, Stage::Ahead{ahead, {}, lr});
        expect_near(corrected.stage.weights().latest(), by_hand.weights, tolerance::kOptimizerSteps,
                    what);
        expect_near(corrected.stage.weights().version(ahead), by_hand.predicted(2, {}, lr),
                    tolerance::kOptimizerSteps, what + " predicted");
        corrected.stage.weights().free(ahead);
        if (!in_place) corrected.stage.weights().free({t, 0, 0});
      }
    }
}

/// A step's length has what moves weights apart: a correction by a rule that stands before.
TEST(GapAware, MeasuresTheCorrectionsOfRulesBeforeIt) {
  const FlatLayout layout = flat_layout({{"a", {2}}}, 8);
  const auto steps_of = [&](std::vector<std::string> names) {
    std::vector<NamedGradientRule> rules;
    for (const std::string& name : names)
      rules.push_back({name, made_rule(name, name == "gap_aware" ? "{decay: 0}" : "{}")});
    const StageGradientRules all(std::move(rules), layout.size, at::kDouble);
    at::Tensor weights = at::zeros({layout.size}, at::kDouble);
    for (std::int64_t t = 0; t < 2; ++t) {
      const at::Tensor before = weights.clone();
      weights -= t == 0 ? 0.1 : 0.3;
      all.stepped({.before = before, .after = weights, .updates = t, .lr = 0.5});
    }
    const NamedTensors slots = all.slots();
    const auto mean =
        std::ranges::find(slots, "gap_aware.step_square", &NamedTensors::value_type::first);
    return std::sqrt(mean->second[0].item<double>());
  };
  EXPECT_NEAR(steps_of({"gap_aware", "error_feedback"}), 0.3 / 0.5, tolerance::kFewOperations);
  EXPECT_NEAR(steps_of({"error_feedback", "gap_aware"}), (0.3 + 0.2) / 0.5,
              tolerance::kFewOperations);
}

/// Without a gradient, AdamW's decay alone moves weights, by lr·λ·W.
TEST(GapAware, MeasuresTheDecayOfAdamw) {
  const auto optimizer = make_optimizer("adamw", "{weight_decay: 0.5}");
  StageParts parts{.options = at::kDouble};
  parts.layers = {linear(3, 2)};
  parts.layers[0]->set_name("0");
  parts.optimizer = optimizer.get();
  parts.gradient_rules = {{"gap_aware", made_rule("gap_aware", "{decay: 0}")}};
  Stage stage(std::move(parts), 1);
  const at::Tensor weights = stage.weights().latest().clone();
  stage.gradients()[0] = at::zeros({2, 3}, at::kDouble);
  stage.gradients()[1] = at::zeros({2}, at::kDouble);
  stage.update(/*in_place=*/true, 0.1);
  const FlatLayout::Entry& matrix = stage.layout().entries[0];
  expect_near(matrix.view(stage.rule_slots()[0].second), (0.5 * matrix.view(weights)).square(),
              tolerance::kPrediction);
}

/// The drift of PipeMare is that of the corrected weights.
TEST(UpdateFeedback, IsPartOfTheDrift) {
  CorrectedStage corrected("sgd", "{momentum: 0.9}", {.options = at::kDouble, .drift_decay = 0.5});
  at::Tensor drift = at::zeros({corrected.stage.layout().size}, at::kDouble);
  for (std::uint64_t t = 0; t < 3; ++t) {
    const at::Tensor before = corrected.stage.weights().latest().clone();
    corrected.update(CorrectedStage::gradients(t));
    drift = 0.5 * drift + 0.5 * (corrected.stage.weights().latest() - before);
    expect_near(corrected.stage.optimizer_state().drift, drift, tolerance::kPrediction);
  }
}

TEST(UpdateFeedback, OfPlainSgdAtOneRateIsThatOfGradients) {
  CorrectedStage corrected("sgd", "{}", {.options = at::kDouble});
  const auto optimizer = make_optimizer("sgd", "{}");
  Training plain(*optimizer, false, false, corrected.stage.layout());
  plain.weights.copy_(corrected.stage.weights().latest());
  for (std::uint64_t t = 0; t < 4; ++t) {
    corrected.update(CorrectedStage::gradients(t));
    std::vector<at::Tensor> gradients = CorrectedStage::gradients(t);
    if (t > 0)
      for (std::size_t p = 0; p < gradients.size(); ++p)
        gradients[p] = 2 * gradients[p] - CorrectedStage::gradients(t - 1)[p];
    plain.step(gradients);
    expect_near(corrected.stage.weights().latest(), plain.weights, tolerance::kPrediction);
  }
}

/// What a parameter is moved by in one update is taken back in the next, which has no gradient.
TEST(UpdateFeedback, TakesAnUpdateWithoutGradientForZero) {
  CorrectedStage corrected("sgd", "{}", {.options = at::kDouble});
  const auto of = [&](std::size_t p) {
    return corrected.stage.layout().entries[p].view(corrected.stage.weights().latest()).clone();
  };
  const at::Tensor matrix = of(0), vector = of(1);
  const std::vector<at::Tensor> gradients = CorrectedStage::gradients(0);
  corrected.update(gradients);
  corrected.update({gradients[0], at::Tensor()});
  expect_near(of(0), matrix - 0.2 * gradients[0], tolerance::kPrediction);
  expect_near(of(1), vector, tolerance::kPrediction);
}

/// An overflow in float16, before the first update and between two.
TEST(UpdateFeedback, KnowsNothingOfSkippedUpdates) {
  const StageParts scaled{.options = at::kFloat, .narrow = at::kHalf};
  CorrectedStage skipping("sgd", "{momentum: 0.9}", scaled),
      plain("sgd", "{momentum: 0.9}", scaled);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<at::Tensor> overflown{at::full({2, 3}, infinity), at::full({2}, infinity)};
  skipping.update(overflown);
  EXPECT_TRUE(at::equal(skipping.stage.weights().latest(), plain.stage.weights().latest()));
  for (std::uint64_t t = 0; t < 3; ++t) {
    skipping.update(CorrectedStage::gradients(t));
    plain.update(CorrectedStage::gradients(t));
    EXPECT_TRUE(at::equal(skipping.stage.weights().latest(), plain.stage.weights().latest())) << t;
    skipping.update(overflown);
    EXPECT_TRUE(at::equal(skipping.stage.weights().latest(), plain.stage.weights().latest())) << t;
    EXPECT_TRUE(at::equal(skipping.last_update(), plain.last_update())) << t;
  }
}

/// The first updates of a training whose gradients wait have none to apply.
TEST(UpdateFeedback, KnowsNothingOfUpdatesThatWait) {
  CorrectedStage waiting("sgd", "{momentum: 0.9}",
                         {.options = at::kDouble, .perturbation = {.gradient_delay = 2}});
  CorrectedStage plain("sgd", "{momentum: 0.9}", {.options = at::kDouble});
  for (std::uint64_t t = 0; t < 5; ++t) {
    waiting.update(CorrectedStage::gradients(t));
    if (t >= 2) plain.update(CorrectedStage::gradients(t - 2));
    EXPECT_TRUE(at::equal(waiting.stage.weights().latest(), plain.stage.weights().latest())) << t;
    EXPECT_TRUE(at::equal(waiting.last_update(), plain.last_update())) << t;
  }
}

TEST(GradientRules, LeaveAFreshGradientAloneToTheBit) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"dc_asgd", "{lambda: 5}"}, {"dc_asgd", "{adaptive: true}"}, {"gap_aware", "{}"}}) {
    const RuledStage stage(name, text);
    const auto ruled = stage.ruled(/*stale=*/false);
    for (std::size_t p = 0; p < ruled.size(); ++p)
      EXPECT_TRUE(at::equal(ruled[p], stage.gradients[p])) << name;
  }
}

TEST(GradientRules, WriteIntoNoGradient) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"clip", "{norm: 0.1}"}, {"dc_asgd", "{adaptive: true}"}, {"gap_aware", "{}"}}) {
    const RuledStage stage(name, text), same(name, text);
    stage.ruled();
    for (std::size_t p = 0; p < 2; ++p)
      EXPECT_TRUE(at::equal(stage.gradients[p], same.gradients[p])) << name;
  }
}

TEST(StalenessLr, DividesByAPowerOfTheStaleness) {
  const auto rule = made_rule("staleness_lr", "{power: 0.5}");
  EXPECT_EQ(rule->lr_factor(0), 1);
  EXPECT_EQ(rule->lr_factor(1), 1);
  EXPECT_DOUBLE_EQ(rule->lr_factor(4), 0.5);
  EXPECT_EQ(made_rule("staleness_lr", "{}")->lr_factor(4), 0.25);
  EXPECT_EQ(made_rule("clip", "{}")->lr_factor(4), 1);
}

}  // namespace
}  // namespace pipewright::test
