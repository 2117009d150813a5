// SPDX-License-Identifier: Apache-2.0
// Learning-rate curves against their formulas.
#include "core/experiment/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

LrSchedule schedule(const std::string& text) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "lr_schedule", problems);
  LrSchedule made(options);
  options.finish();
  for (const Error& problem : problems.errors()) ADD_FAILURE() << problem.what();
  return made;
}

/// At every t of 12 with base rate 0.4.
template <class Formula>
void expect_curve(const std::string& text, const Formula& formula) {
  const LrSchedule curve = schedule(text);
  for (int t = 0; t < 12; ++t)
    EXPECT_NEAR(curve.at(0.4, t, 12), formula(t), tolerance::kFewOperations) << text << " at " << t;
}

TEST(LrSchedule, IsConstantUnlessSaidOtherwise) {
  expect_curve("{}", [](int) { return 0.4; });
  EXPECT_EQ(LrSchedule().at(0.4, 3, 12), 0.4);
}

TEST(LrSchedule, DropsEverySoManyUnits) {
  expect_curve("{name: step, size: 5, gamma: 0.5}",
               [](int t) { return 0.4 * std::pow(0.5, t / 5); });
}

TEST(LrSchedule, DropsAtMilestonesFromThatUnitOn) {
  expect_curve("{name: multistep, milestones: [3, 8], gamma: 0.1}", [](int t) {
    return t < 3 ? 0.4 : t < 8 ? 0.04 : 0.004;
  });
}

TEST(LrSchedule, FallsByAPowerToItsEnd) {
  expect_curve("{name: poly, power: 2, end_lr: 0.1}",
               [](int t) { return 0.1 + 0.3 * std::pow(1 - t / 12.0, 2); });
}

TEST(LrSchedule, FallsByACosineToItsEnd) {
  expect_curve("{name: cosine, end_lr: 0.1}",
               [](int t) { return 0.1 + 0.3 * (1 + std::cos(std::numbers::pi * t / 12)) / 2; });
}

TEST(LrSchedule, FallsOnALineToItsEnd) {
  expect_curve("{name: linear, end_lr: 0.1}", [](int t) { return 0.4 - 0.3 * t / 12; });
}

TEST(LrSchedule, StaysConstantForAShareOfTheTrainingAndThenFallsOnALine) {
  // modded-nanogpt's rule with a cool-down of 0.75: x = t/T, w = (1 − x)/0.75
  expect_curve("{name: constant_then_linear, constant: 0.25, end_lr: 0.04}", [](int t) {
    const double w = (1 - t / 12.0) / 0.75;
    return t < 3 ? 0.4 : w * 0.4 + (1 - w) * 0.04;
  });
  expect_curve("{name: constant_then_linear, constant: 1}", [](int) { return 0.4; });
}

TEST(LrSchedule, TakesTheWarmUpAsAShareOfTheTraining) {
  // Hugging Face's warmup_ratio: ⌈0.3 · 12⌉ = 4 units
  expect_curve("{name: linear, warmup: {share: 0.3, then: begin}}",
               [](int t) { return t < 4 ? 0.4 * t / 4 : 0.4 * (1 - (t - 4) / 8.0); });
}

/// Whatever a share in decimals is in binary, so much of the training is so many units.
TEST(LrSchedule, TakesAShareThatIsAWholeNumberOfUnitsAsThatNumber) {
  for (int percent = 1; percent <= 100; ++percent)
    for (const int total : {50, 100, 700, 100'000}) {
      if (percent * total % 100 != 0) continue;
      const int length = percent * total / 100;
      const LrSchedule curve =
          schedule(concat("{name: constant, warmup: {share: ", percent / 100.0, "}}"));
      EXPECT_EQ(curve.at(1, length, total), 1) << percent << " % of " << total;
      EXPECT_LT(curve.at(1, length - 1, total), 1) << percent << " % of " << total;
    }
}

TEST(LrSchedule, RisesFromAFractionDuringWarmUp) {
  expect_curve("{name: constant, warmup: {length: 4, start: 0.2}}",
               [](int t) { return t >= 4 ? 0.4 : 0.4 * (0.2 + 0.8 * t / 4); });
  expect_curve("{name: linear, warmup: {length: 4}}",
               [](int t) { return (0.4 - 0.4 * t / 12) * (t >= 4 ? 1.0 : t / 4.0); });
}

TEST(LrSchedule, CountsEpochsOrSteps) {
  EXPECT_FALSE(schedule("{}").per_step());
  EXPECT_TRUE(schedule("{per: step}").per_step());
}

TEST(LrSchedule, StaysFiniteForNoUnitsAtAll) {
  for (const char* text :
       {"{name: poly}", "{name: cosine}", "{name: linear}", "{name: constant_then_linear}"})
    EXPECT_TRUE(std::isfinite(schedule(text).at(0.4, 0, 0))) << text;
}

TEST(LrSchedule, MayBeginToFallOnlyAfterTheWarmUp) {
  // Hugging Face's cosine and polynomial schedules with 4 of 12 units of warm-up
  expect_curve("{name: cosine, warmup: {length: 4, then: begin}}", [](int t) {
    return t < 4 ? 0.4 * t / 4 : 0.4 * (1 + std::cos(std::numbers::pi * (t - 4) / 8)) / 2;
  });
  expect_curve("{name: poly, end_lr: 1.0e-7, warmup: {length: 4, then: begin}}", [](int t) {
    return t < 4 ? 0.4 * t / 4 : (0.4 - 1e-7) * (1 - (t - 4) / 8.0) + 1e-7;
  });
  expect_curve("{name: multistep, milestones: [6], warmup: {length: 4, then: begin}}", [](int t) {
    return t < 4 ? 0.4 * t / 4 : t < 6 ? 0.4 : 0.04;
  });
}

std::string refusal_of(const std::string& text) {
  const Value document = parse_yaml(text, "test");
  Problems problems;
  Options options(&document, "lr_schedule", problems);
  const LrSchedule made(options);
  std::vector<std::string> messages;
  for (const Error& problem : problems.errors()) messages.push_back(problem.message());
  return join(messages, "\n");
}

TEST(LrSchedule, RefusesWhatItsShapeWouldNotNotice) {
  EXPECT_EQ(refusal_of("{name: step, milestones: [3]}"),
            "lr_schedule.name is step, with which milestones has no effect; leave it out, or take "
            "multistep");
  EXPECT_EQ(refusal_of("{name: multistep}"),
            "lr_schedule.name is multistep, and there are no milestones; expected the times of the "
            "drops, such as milestones: [10, 15]");
  EXPECT_EQ(refusal_of("{name: cosine, milestones: [3], gamma: 0.5}"),
            "lr_schedule.name is cosine, with which gamma has no effect; leave it out, or take "
            "step or multistep\n"
            "lr_schedule.name is cosine, with which milestones has no effect; leave it out, or "
            "take multistep");
  EXPECT_NE(refusal_of("{end_lr: 0.1}"), "") << "the shape is constant";
  for (const char* const shape :
       {"constant", "step", "poly", "cosine", "linear", "constant_then_linear"})
    EXPECT_EQ(refusal_of(concat("{name: ", std::string_view(shape),
                                ", size: 30, gamma: 0.1, milestones: [], power: 1, constant: 0.5, "
                                "end_lr: 0}")),
              "")
        << "a resolved file has the defaults of all";
  EXPECT_EQ(refusal_of("{name: cosin, milestones: [3]}").find("no effect"), std::string::npos)
      << "the name is wrong, and nobody knows which was meant";
}

}  // namespace
}  // namespace pipewright::test
