// SPDX-License-Identifier: Apache-2.0
// Optimizers by part: each parameter has the bits that its own optimizer gives it.
#include "core/optim/optimizer_groups.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/nn/memory_format.h"
#include "tests/unit/optim/optimizer_fixture.h"

namespace pipewright::test {
namespace {

OptimizerGroups groups_of(
    const std::vector<std::tuple<std::string, std::string, std::string>>& described) {
  std::vector<OptimizerGroup> groups;
  for (const auto& [match, name, options] : described)
    groups.push_back({"", {match}, make_optimizer(name, options)});
  return OptimizerGroups(std::move(groups));
}

/// Whether both have the same parameters; the gaps of a prediction are not written.
bool equal_parts(const Training& of, const at::Tensor& a, const at::Tensor& b) {
  for (std::size_t p = 0; p < of.layout.entries.size(); ++p)
    if (!at::equal(of.part(a, p), of.part(b, p))) return false;
  return true;
}

FlatLayout block(std::int64_t bytes = 8) {
  return flat_layout({{"block.weight", {3, 5}}, {"block.bias", {3}}, {"head.weight", {4, 3}}},
                     bytes);
}

TEST(OptimizerGroups, OneOfAllParametersHasTheBitsOfItsOptimizer) {
  for (const auto& [name, options] : kOptimizers) {
    const OptimizerGroups groups = groups_of({{"*", name, options}});
    const auto alone = make_optimizer(name, options);
    Training one(groups, true, true), other(*alone, true, true);
    for (std::uint64_t t = 1; t <= 4; ++t) {
      const double factor = 20.0 / static_cast<double>(t);
      one.step(one.gradients(t), factor);
      other.step(other.gradients(t), factor * alone->lr());
      EXPECT_TRUE(at::equal(one.weights, other.weights)) << name << options << t;
      EXPECT_TRUE(equal_parts(one, one.predicted(3, {}, factor),
                              other.predicted(3, {}, factor * alone->lr())))
          << name << options << t;
      EXPECT_TRUE(at::equal(one.state.last_gradient, other.state.last_gradient)) << name;
    }
    EXPECT_EQ(one.state.steps, 4);
  }
}

TEST(OptimizerGroups, StepAndPredictEachParameterAsItsOwnAtItsRate) {
  const OptimizerGroups groups =
      groups_of({{"block.*t", "muon", "{lr: 0.02}"}, {"*", "adamw", "{lr: 0.3, eps: 0.001}"}});
  const auto muon = make_optimizer("muon", "{}"), adamw = make_optimizer("adamw", "{eps: 0.001}");
  Training all(groups, true, false, block()), by_muon(*muon, true, false, block()),
      by_adamw(*adamw, true, false, block());
  for (std::uint64_t t = 1; t <= 4; ++t) {
    all.step(all.gradients(t), 0.5);
    by_muon.step(all.gradients(t), 0.5 * 0.02);
    by_adamw.step(all.gradients(t), 0.5 * 0.3);
  }
  const at::Tensor ahead = all.predicted(2, {}, 0.5);
  for (std::size_t p = 0; p < 3; ++p) {
    const Training& own = p == 0 ? by_muon : by_adamw;
    EXPECT_TRUE(at::equal(all.part(all.weights, p), own.part(own.weights, p))) << p;
    EXPECT_TRUE(
        at::equal(all.part(ahead, p), own.part(own.predicted(2, {}, p == 0 ? 0.01 : 0.15), p)))
        << p;
  }
}

TEST(OptimizerGroups, KeepTheStateOfEachParametersOptimizerOnly) {
  const OptimizerGroups groups =
      groups_of({{"block.weight", "muon", "{}"}, {"head.*", "sgd", "{}"}, {"*", "adamw", "{}"}});
  const FlatLayout layout = block();
  const OptimizerState state = fresh_state(groups, layout, at::kDouble, false, false);
  EXPECT_TRUE(state.slots.empty());
  std::vector<std::string> held;
  const auto tables = groups.tables(false);
  for (std::size_t t = 0; t < tables.size(); ++t)
    for (std::size_t p = 0; p < layout.entries.size(); ++p)
      if (state.tables[t][p].defined())
        held.push_back(tables[t].name + " of " + layout.entries[p].name);
  EXPECT_EQ(held, (std::vector<std::string>{"momentum_buffer of block.weight",
                                            "exp_avg_sq of block.bias", "exp_avg of block.bias"}));
  EXPECT_EQ(numbers_in_tables(groups, layout, false), 15 + 2 * 3);
  EXPECT_EQ(numbers_in_tables(groups, layout, true), 2 * 15 + 2 * 3 + 12);
}

/// A step and a prediction in one pass, as mixed precision makes copies meanwhile.
TEST(OptimizerGroups, PredictInThePassOfTheStepWithTheSameBits) {
  const OptimizerGroups groups =
      groups_of({{"*.weight", "soap", "{}"}, {"*", "adam", "{weight_decay: 0.1}"}});
  Training fused(groups, true, false, block(4)), separate(groups, true, false, block(4));
  for (Training* each : {&fused, &separate}) {
    each->weights = each->weights.to(at::kFloat);
    each->state = fresh_state(groups, each->layout, at::kFloat, true, false);
  }
  for (std::uint64_t t = 1; t <= 3; ++t) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& gradient : fused.gradients(t))
      gradients.push_back(gradient.to(at::kFloat));
    at::Tensor next = fused.weights.clone(), ahead = at::zeros_like(next);
    std::vector<std::int64_t> stepped(3), predicted(3);
    const auto count = [&](std::vector<std::int64_t>& in) {
      return [&in, &fused](std::int64_t begin, std::int64_t end) {
        for (std::size_t p = 0; p < 3; ++p) {
          const FlatLayout::Entry& entry = fused.layout.entries[p];
          if (begin >= entry.offset && end <= entry.offset + entry.size) in[p] += end - begin;
        }
      };
    };
    step_and_predict(groups,
                     {.layout = fused.layout,
                      .gradients = gradients,
                      .weights = fused.weights,
                      .next = next,
                      .state = fused.state,
                      .lr = 2,
                      .made = count(stepped)},
                     {.weights = next,
                      .ahead = ahead,
                      .state = fused.state,
                      .rule = {},
                      .steps = 3,
                      .lr = 1.5,
                      .made = count(predicted)});
    fused.weights = next;
    separate.step(gradients, 2);
    EXPECT_TRUE(at::equal(fused.weights, separate.weights)) << t;
    EXPECT_TRUE(equal_parts(fused, ahead, separate.predicted(3, {}, 1.5))) << t;
    for (std::size_t p = 0; p < 3; ++p) {
      EXPECT_EQ(stepped[p], fused.layout.entries[p].size);
      EXPECT_EQ(predicted[p], fused.layout.entries[p].size);
    }
  }
}

/// A checkpoint gives the number of steps to the whole state.
TEST(OptimizerGroups, TakeTheNumberOfStepsFromTheWhole) {
  const OptimizerGroups groups = groups_of({{"*", "adam", "{}"}});
  Training training(groups, true);
  training.step(training.gradients(1), 1);
  const at::Tensor before = training.predicted(1, {}, 1);
  training.state.steps = 5;
  const at::Tensor late = training.predicted(1, {}, 1);
  EXPECT_FALSE(at::equal(late, before)) << "the bias corrections are those of five steps";
  training.step(training.gradients(2), 1);
  EXPECT_EQ(training.state.steps, 6);
}

/// The state of a convolution's weight lies in memory as the weight does, and is saved by shape.
TEST(OptimizerGroups, KeepTheMemoryFormatOfConvolutions) {
  FlatLayout layout = flat_layout({{"c.weight", {4, 3, 2, 2}}}, 8);
  layout.entries[0].channels_last = true;
  const OptimizerGroups groups = groups_of({{"*", "adam", "{}"}});
  const auto alone = make_optimizer("adam", "{}");
  OptimizerState one = fresh_state(groups, layout, at::kDouble, false, false),
                 other = fresh_state(*alone, layout, at::kDouble, false, false);
  at::Tensor a = at::zeros({layout.size}, at::kDouble), b = a.clone();
  const std::vector<at::Tensor> gradients{random({4, 3, 2, 2}, 1)};
  groups.step(
      {.layout = layout, .gradients = gradients, .weights = a, .next = a, .state = one, .lr = 1});
  alone->step({.layout = layout,
               .gradients = gradients,
               .weights = b,
               .next = b,
               .state = other,
               .lr = alone->lr()});
  EXPECT_TRUE(at::equal(a, b));
  EXPECT_TRUE(at::equal(one.tables[0][0], layout.entries[0].view(other.slots[0])));
}

TEST(OptimizerGroups, OfAStageHaveTheMomentaOfTheStage) {
  const OptimizerGroups groups = groups_of(
      {{"block.*", "sgd", "{momentum: 0.5, momentum_by_delay: 0.9}"}, {"*", "lion", "{}"}});
  const auto own = groups.of_stage(2, 4);
  ASSERT_NE(own, nullptr);
  const auto sgd = make_optimizer("sgd", "{momentum: 0.7}");
  Training one(*own, false, false, block()), other(*sgd, false, false, block());
  for (std::uint64_t t = 1; t <= 3; ++t) {
    one.step(one.gradients(t), 1);
    other.step(one.gradients(t), sgd->lr());
  }
  EXPECT_TRUE(at::equal(one.part(one.weights, 0), other.part(other.weights, 0)));
  EXPECT_EQ(groups_of({{"*", "sgd", "{}"}}).of_stage(2, 4), nullptr);
}

TEST(OptimizerGroups, RefuseAParameterOfNone) {
  const OptimizerGroups groups = groups_of({{"block.*", "sgd", "{}"}});
  try {
    fresh_state(groups, block(), at::kDouble, false, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("head.weight"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace pipewright::test
