// SPDX-License-Identifier: Apache-2.0
// What the updates of schedules read.
#include <gtest/gtest.h>

#include <tuple>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "tests/unit/stability/dynamics.h"

namespace pipewright {
namespace {

std::vector<int> forward_delays(const Recurrence& recurrence) {
  std::vector<int> delays;
  for (std::size_t k = 0; k < recurrence.stages.size(); ++k)
    delays.push_back(delay_of(recurrence, static_cast<int>(k)).forward);
  return delays;
}

TEST(Recurrence, OfPipeDreamReadsAsManyVersionsBackAsStagesFollow) {
  const Recurrence recurrence = recurrence_of("pipedream", "{}", 4);
  EXPECT_EQ(forward_delays(recurrence), (std::vector{3, 2, 1, 0}));
  const std::vector<GradientTerm> expected{
      {.weight = 1, .forward = {{-3}, {-2}, {-1}, {0}}, .backward = {-3}}};
  ASSERT_EQ(recurrence.stages[0].size(), 1U);
  EXPECT_EQ(recurrence.stages[0][0].terms, expected);
}

TEST(Recurrence, OfPipeOptimPredictsInTheForwardAlone) {
  const Recurrence recurrence = recurrence_of("pipeoptim", "{}", 3);
  const GradientTerm& term = recurrence.stages[0][0].terms.at(0);
  EXPECT_EQ(term.forward[0], (Reading{.version = -2, .ahead = 2}));
  EXPECT_EQ(term.backward, Reading{});
  EXPECT_EQ(delay_of(recurrence, 0).backward, 0);
}

TEST(Recurrence, JoinsMicroBatchesThatReadTheSame) {
  const Recurrence recurrence = recurrence_of("pipedream", "{}", 3, 2);
  // Of two micro-batches the first is forwarded a mini-batch before the last update at stage 0.
  const auto& terms = recurrence.stages[0][0].terms;
  double all = 0;
  for (const GradientTerm& term : terms) all += term.weight;
  EXPECT_EQ(all, 1);
  EXPECT_EQ(recurrence_of("gpipe", "{}", 3, 8).stages[0][0].terms.size(), 1U);
}

TEST(Recurrence, OfReplicasIsThatOfOne) {
  const auto make = [](int replicas) {
    return steady_recurrence([&](int minibatches) {
      return schedule_of("pipedream", "{}",
                         {.stages = 3, .replicas = replicas, .minibatches = minibatches});
    });
  };
  EXPECT_EQ(make(2), make(1));
}

/// Late in a training every scheme but one that draws its delays is periodic, whether or not it
/// says so of trainings from their beginning.
TEST(Recurrence, IsPeriodicAfterWarmUpsOfEveryShape) {
  for (const auto& [scheme, options, periodic] :
       std::vector<std::tuple<const char*, const char*, bool>>{
           {"pipemare", "{}", true},
           {"pipemare", "{annealing: 500, warmup: 300}", true},
           {"pipedream", "{}", true},
           {"delayed_sgd", "{delay: {law: geometric, mean: 0.2}}", false},
           {"delayed_sgd", "{delay: {law: uniform, mean: 3}}", false}})
    for (const int stages : {2, 8})
      for (const int microbatches : {1, 4, 64}) {
        const SchemeReading reading(scheme, options);
        const auto make = [&](int minibatches) {
          return reading.scheme->schedule({.stages = stages,
                                           .microbatches = microbatches,
                                           .minibatches = minibatches,
                                           .first_minibatch = kLate});
        };
        EXPECT_EQ(is_periodic(make), periodic) << scheme << options << stages << microbatches;
        if (!periodic) continue;
        const Recurrence recurrence = steady_recurrence(make, {.periodic = true});
        EXPECT_EQ(recurrence.minibatches, 1);
        EXPECT_EQ(recurrence.stages[0][0].scale, 1) << "annealing is over";
      }
}

TEST(Recurrence, HasTheScaleOfUpdatesInItsPredictions) {
  const Recurrence recurrence = recurrence_of("spectrain", "{version: 2, as_coded: true}", 3);
  EXPECT_EQ(recurrence.stages[0][0].scale, 3);
  EXPECT_EQ(recurrence.stages[2][0].scale, 1);
}

/// Two updates of the rates 1 and 1/2 in turn.
Schedule alternating(int minibatches) {
  Schedule schedule = schedule_of("gpipe", "{}", {.minibatches = minibatches});
  for (Action& action : schedule.workers[0])
    if (action.kind == ActionKind::Update && action.minibatch % 2 == 1) action.scale = 0.5;
  return schedule;
}

TEST(Recurrence, FindsAPeriodOfTwoMiniBatches) {
  const Recurrence recurrence = steady_recurrence(alternating);
  EXPECT_EQ(recurrence.minibatches, 2);
  ASSERT_EQ(recurrence.stages[0].size(), 2U);
  EXPECT_NE(recurrence.stages[0][0].scale, recurrence.stages[0][1].scale);
}

TEST(Recurrence, WithDelayedGradientsIsThatOfLongerDelays) {
  EXPECT_EQ(with_delayed_gradients(recurrence_of("gpipe", "{}", 1), 3),
            recurrence_of("delayed_sgd", "{delay: 3}", 1));
  EXPECT_EQ(with_delayed_gradients(recurrence_of("pipedream", "{}", 3), 2),
            recurrence_of("delayed_sgd", "{delay: [4, 3, 2]}", 3));
  const Recurrence spectrain = recurrence_of("spectrain", "{}", 3);
  EXPECT_EQ(with_delayed_gradients(spectrain, 0), spectrain);
}

/// With two updates a period, an update of another scale applies the gradient of the one before,
/// which reads what that one has read.
TEST(Recurrence, WithDelayedGradientsOfSeveralUpdatesAPeriod) {
  const Recurrence before = steady_recurrence(alternating),
                   by_one = with_delayed_gradients(before, 1);
  const auto& stage = by_one.stages[0];
  ASSERT_EQ(stage.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(stage[i].scale, before.stages[0][i].scale);
  EXPECT_EQ(stage[0].terms.at(0).forward[0].version, -1);
  EXPECT_EQ(stage[1].terms.at(0).forward[0].version, 0);
  EXPECT_EQ(with_delayed_gradients(by_one, 3), with_delayed_gradients(before, 4));
  for (const int updates : {1, 2, 5})
    EXPECT_EQ(delay_of(with_delayed_gradients(before, updates), 0).forward, updates);
}

TEST(Recurrence, WithoutASteadyStateIsRefused) {
  const auto ever_smaller = [](int minibatches) {
    Schedule schedule = schedule_of("gpipe", "{}", {.minibatches = minibatches});
    for (Action& action : schedule.workers[0])
      if (action.kind == ActionKind::Update) action.scale = 1.0 / (1 + action.minibatch);
    return schedule;
  };
  try {
    steady_recurrence(ever_smaller);
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("is not periodic within the"), std::string::npos)
        << error.message();
  }
}

/// Drawn delays are now and then equal for a while: a scheme that does not repeat itself must show
/// more than that.
TEST(Recurrence, OfDrawnDelaysHasNoSteadyState) {
  for (int seed = 1; seed <= 20; ++seed) {
    const auto make = [&](int minibatches) {
      return schedule_of("delayed_sgd",
                         concat("{delay: {law: geometric, mean: 1, seed: ", seed, "}}"),
                         {.stages = 2, .minibatches = minibatches});
    };
    EXPECT_THROW(steady_recurrence(make, {.periodic = false}), Error) << seed;
    EXPECT_NO_THROW(steady_recurrence(
        [&](int minibatches) {
          return schedule_of("delayed_sgd", "{delay: 3}",
                             {.stages = 2, .minibatches = minibatches});
        },
        {.periodic = false}));
  }
}

TEST(Recurrence, WaitsUntilALongDelayIsFilled) {
  EXPECT_EQ(delay_of(recurrence_of("delayed_sgd", "{delay: 200}", 1), 0).forward, 200);
}

}  // namespace
}  // namespace pipewright
