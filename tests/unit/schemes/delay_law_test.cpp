// SPDX-License-Identifier: Apache-2.0
// Delays that are drawn from a law, read from the versions that the schedule asks for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// The delay of each forward of a stage: the updates before it minus the version that it reads.
std::vector<int> delays_of(const std::string& delay, const PipelineShape& shape, int stage = 0) {
  std::vector<int> delays;
  const Schedule schedule = schedule_of("delayed_sgd", "{delay: " + delay + "}", shape);
  for (const Action& action : schedule.workers[static_cast<std::size_t>(stage)])
    if (action.kind == ActionKind::Forward)
      delays.push_back(action.minibatch - action.weights.version);
  return delays;
}

/// The delays of many mini-batches without the first ones, which find too few versions.
std::vector<int> many(const std::string& delay) {
  constexpr int kLeft = 100, kCount = 20'000;
  std::vector<int> delays = delays_of(delay, {.minibatches = kLeft + kCount});
  delays.erase(delays.begin(), delays.begin() + kLeft);
  return delays;
}

double mean(const std::vector<int>& delays) {
  return std::accumulate(delays.begin(), delays.end(), 0.0) / static_cast<double>(delays.size());
}

double share(const std::vector<int>& delays, const std::function<bool(int)>& which) {
  return static_cast<double>(std::ranges::count_if(delays, which)) /
         static_cast<double>(delays.size());
}

std::vector<int> from(std::vector<int> delays, int first) {
  delays.erase(delays.begin(), delays.begin() + first);
  return delays;
}

// Another program, with its own Philox, drew these numbers for mini-batches 40 to 59.
TEST(DelayLaw, DrawsWhatAnotherProgramDraws) {
  EXPECT_EQ(from(delays_of("{law: uniform, mean: 3}", {.minibatches = 60}), 40),
            (std::vector{6, 2, 6, 0, 6, 5, 1, 4, 6, 0, 5, 3, 2, 6, 0, 3, 0, 6, 2, 4}));
  EXPECT_EQ(from(delays_of("{law: geometric, mean: 3}", {.minibatches = 60}), 40),
            (std::vector{14, 1, 13, 0, 13, 5, 0, 4, 7, 0, 6, 2, 1, 12, 0, 2, 0, 8, 1, 3}));
  EXPECT_EQ(from(delays_of("{law: uniform, mean: 3, per_stage: true}",
                           {.stages = 2, .minibatches = 60}, 1),
                 40),
            (std::vector{1, 2, 1, 3, 3, 6, 4, 6, 4, 6, 3, 4, 1, 4, 1, 0, 4, 1, 6, 3}));
}

TEST(DelayLaw, UniformHasEveryDelayUpToTwiceTheMeanEquallyOften) {
  const std::vector<int> delays = many("{law: uniform, mean: 2.5}");
  const auto count = static_cast<double>(delays.size());
  for (int d = 0; d <= 5; ++d)
    EXPECT_NEAR(share(delays, [&](int delay) { return delay == d; }), 1.0 / 6,
                tolerance::share_of(count, 1.0 / 6))
        << d;
  EXPECT_LE(*std::ranges::max_element(delays), 5);
}

/// What is cut off lowers the mean by (b + 1) q^(b+1) / (1 − q^(b+1)), b = ⌈10 (1 + mean)⌉.
TEST(DelayLaw, GeometricHasItsMeanAndItsTail) {
  for (const double wanted : {0.5, 3.0}) {
    const std::vector<int> delays = many(concat("{law: geometric, mean: ", wanted, "}"));
    const auto count = static_cast<double>(delays.size());
    const double q = wanted / (1 + wanted), most = std::ceil(10 * (1 + wanted));
    const double cut = (most + 1) * std::pow(q, most + 1);
    EXPECT_LT(cut, 5e-4 * wanted);
    EXPECT_NEAR(mean(delays), wanted - cut, tolerance::mean_of(count, wanted * (1 + wanted)));
    for (const int least : {1, 2, 5, 9})
      EXPECT_NEAR(share(delays, [&](int delay) { return delay >= least; }), std::pow(q, least),
                  tolerance::share_of(count, std::pow(q, least)) + std::pow(q, most))
          << least;
    EXPECT_LE(*std::ranges::max_element(delays), most);
  }
}

TEST(DelayLaw, FixedIsTheNumberItself) {
  const PipelineShape shape{.stages = 3, .minibatches = 12};
  EXPECT_EQ(schedule_of("delayed_sgd", "{delay: {law: fixed, mean: 3}}", shape),
            schedule_of("delayed_sgd", "{delay: 3}", shape));
  for (const char* law : {"uniform", "geometric"})
    EXPECT_EQ(schedule_of("delayed_sgd", concat("{delay: {law: ", law, ", mean: 0}}"), shape),
              schedule_of("delayed_sgd", "{delay: 0}", shape));
}

/// A resumed training asks for a schedule that begins later; delays that its first mini-batches
/// cannot have, because a drained pipe keeps no old versions, are cut.
TEST(DelayLaw, IsTheSameWhereverAScheduleBegins) {
  for (const char* law : {"uniform", "geometric"}) {
    const std::string text = concat("{law: ", law, ", mean: 3}");
    const std::vector<int> whole = delays_of(text, {.minibatches = 150});
    const std::vector<int> resumed = delays_of(text, {.minibatches = 100, .first_minibatch = 50});
    for (std::size_t i = 0; i < resumed.size(); ++i)
      EXPECT_EQ(resumed[i], std::min(static_cast<int>(i), whole[50 + i])) << law << " " << i;
  }
}

TEST(DelayLaw, IsOneForAllStagesUnlessEachHasItsOwn) {
  const PipelineShape shape{.stages = 3, .minibatches = 50};
  const std::string one = "{law: uniform, mean: 4}",
                    each = "{law: uniform, mean: 4, per_stage: true}";
  EXPECT_EQ(delays_of(one, shape, 0), delays_of(one, shape, 2));
  EXPECT_NE(delays_of(each, shape, 0), delays_of(each, shape, 2));
  EXPECT_NE(delays_of(one, shape), delays_of("{law: uniform, mean: 4, seed: 2}", shape));
}

TEST(DelayLaw, AsksForVersionsThatExist) {
  for (const char* law : {"uniform", "geometric"})
    for (const char* per_stage : {"false", "true"}) {
      const Schedule schedule = schedule_of(
          "delayed_sgd", concat("{delay: {law: ", law, ", mean: 2, per_stage: ", per_stage, "}}"),
          {.stages = 3, .replicas = 2, .microbatches = 2, .minibatches = 80});
      EXPECT_NO_THROW(prove(schedule));
      for (const auto& worker : prove(schedule).versions.workers)
        for (const ActionWeights& weights : worker) EXPECT_GE(weights.key.version, 0);
    }
}

TEST(DelayLaw, RepeatsOnlyWhereItIsFixed) {
  const auto repeats = [](const std::string& delay) {
    return SchemeReading("delayed_sgd", "{delay: " + delay + "}").scheme->repeats();
  };
  EXPECT_TRUE(repeats("3"));
  EXPECT_TRUE(repeats("{law: fixed, mean: 3}"));
  EXPECT_FALSE(repeats("{law: uniform, mean: 3}"));
  EXPECT_FALSE(repeats("{law: geometric, mean: 3}"));
}

}  // namespace
}  // namespace pipewright
