// SPDX-License-Identifier: Apache-2.0
// Gradient rules by hand, on the gradient of one small stage.
#include "core/stage/gradient_rules/gradient_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/stage/torch.h"
#include "core/stage/weight_store.h"
#include "tests/unit/stage/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

std::shared_ptr<const GradientRule> made_rule(const std::string& name, const std::string& text) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "gradient_rules", problems);
  std::shared_ptr<const GradientRule> rule =
      Registry<GradientRule>::instance().find(name)->make(options);
  options.finish();
  for (const Error& problem : problems.errors()) ADD_FAILURE() << problem.what();
  return rule;
}

/// A stage of a matrix and a vector, whose gradient and weights are at hand.
struct RuledStage {
  RuledStage(const std::string& name, const std::string& text, double peak = 0.1)
      : layout(flat_layout({{"a", {2, 3}}, {"b", {2}}}, 8)),
        rules({{name, made_rule(name, text)}}, layout.size, at::kDouble),
        peak_lr(peak),
        weights(at::zeros({layout.size}, at::kDouble)),
        read(weights.clone()) {
    for (const FlatLayout::Entry& entry : layout.entries) {
      entry.of(weights).copy_(random(entry.shape, 3));
      entry.of(read).copy_(random(entry.shape, 4));
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
    return layout.entries[p].of(weights) - layout.entries[p].of(read);
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
  stage.rules.stepped(before, after, 0.1);
  stage.rules.stepped(after, before, 0.05);
  const at::Tensor first = (before - after) / 0.1, second = (after - before) / 0.05;
  const at::Tensor mean =
      (0.25 * 0.75 * first * first + 0.25 * second * second) / (1 - 0.75 * 0.75);
  std::vector<at::Tensor> expected;
  for (std::size_t p = 0; p < 2; ++p) {
    const at::Tensor length = 0.2 * (stage.layout.entries[p].of(mean).sqrt() + 0.01);
    expected.push_back(stage.gradients[p] / (1 + stage.gap(p).abs() / length));
  }
  expect_each_near(stage.ruled(true, 2), expected);
}

/// A weight that has moved by one step of average length has half its gradient left.
TEST(GapAware, HalvesTheGradientOfAWeightThatHasMovedByOneStep) {
  RuledStage stage("gap_aware", "{eps: 1.0e-30}", 0.1);
  stage.rules.stepped(stage.read, stage.weights, 0.1);
  expect_each_near(stage.ruled(), {stage.gradients[0] / 2, stage.gradients[1] / 2});
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
