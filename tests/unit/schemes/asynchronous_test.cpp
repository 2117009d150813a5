// SPDX-License-Identifier: Apache-2.0
// PACI's bound on how far the weights of a backward are from those of its forward; linear weight
// prediction beside SpecTrain; features replay; a bound on what is in flight in PipeDream.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/cost/cost_table.h"
#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr int kMiniBatches = 12;

/// The largest number of updates between the weights of a forward and those of its backward.
int largest_mismatch(const Schedule& schedule) {
  int most = 0;
  for (int minibatch = 0; minibatch < schedule.shape.minibatches; ++minibatch) {
    std::map<std::pair<int, int>, int> forward;  // (stage, micro-batch) → version
    for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
      const std::pair place(pass.action.stage, pass.action.microbatch);
      if (pass.action.kind == ActionKind::Forward) forward[place] = pass.key.version;
      if (pass.action.kind == ActionKind::Backward)
        most = std::max(most, pass.key.version - forward.at(place));
    }
  }
  return most;
}

TEST(Paci, IsStaleByNoMoreThanItsBound) {  // ⌈(N−1)/a⌉ for a micro-batches an update
  for (int stages = 1; stages <= 9; ++stages)
    for (int a = 1; a <= 10; ++a) {
      const PipelineShape shape{.stages = stages, .microbatches = a, .minibatches = kMiniBatches};
      EXPECT_EQ(largest_mismatch(schedule_of("paci", "{}", shape)), (stages - 1 + a - 1) / a)
          << stages << " stages, " << a << " micro-batches";
    }
}

TEST(Paci, TellsItsBound) {
  EXPECT_NE(SchemeReading("paci", "{}").scheme->remark().find("⌈(N−1)/M⌉"), std::string::npos);
}

const std::vector<PipelineShape> kShapes{
    {.stages = 1, .minibatches = 5},
    {.stages = 4, .minibatches = kMiniBatches},
    {.stages = 5, .microbatches = 3, .minibatches = 6},
    {.stages = 3, .replicas = 2, .microbatches = 2, .minibatches = 5},
    {.stages = 4, .minibatches = 6, .placement = {0, 1, 0, 1}}};

TEST(Paci, IsPipeDreamWithoutStashing) {
  for (const PipelineShape& shape : kShapes)
    EXPECT_EQ(schedule_of("paci", "{}", shape),
              schedule_of("pipedream", "{weight_stashing: false}", shape));
}

TEST(LinearWeightPrediction, AtTheDelayHasTheWeightsOfSpecTrainTwo) {
  for (const PipelineShape& shape : kShapes)
    EXPECT_EQ(schedule_of("lwp", "{}", shape).workers,
              schedule_of("spectrain", "{version: 2, s_mode: exact}", shape).workers);
}

TEST(LinearWeightPrediction, OfNoHorizonIsPipeDream) {
  for (const PipelineShape& shape : kShapes)
    for (const char* unit : {"delay", "steps"})
      EXPECT_EQ(schedule_of("lwp", concat("{horizon: 0, unit: ", unit, "}"), shape),
                schedule_of("pipedream", "{}", shape));
}

TEST(LinearWeightPrediction, PredictsASteadyNumberOfStepsOrOfDelays) {
  const PipelineShape shape{.stages = 4, .minibatches = kMiniBatches};
  const auto ahead = [&](const char* options, int stage) {
    const Schedule schedule = schedule_of("lwp", options, shape);
    for (const PassWeights& pass : weights_used(prove(schedule), kMiniBatches - 1))
      if (pass.action.stage == stage && pass.action.kind == ActionKind::Forward)
        return pass.key.ahead;
    return -1;
  };
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(ahead("{horizon: 5, unit: steps}", stage), 5);
    EXPECT_EQ(ahead("{horizon: 2}", stage), 2 * (3 - stage));
  }
  EXPECT_EQ(ahead("{horizon: 0.5}", 0), 2) << "1.5 is rounded";
  EXPECT_EQ(ahead("{horizon: 0.5}", 1), 1);
}

TEST(FeaturesReplay, RunsForwardAgainWithTheWeightsOfItsBackward) {
  const Schedule schedule =
      schedule_of("features_replay", "{}", {.stages = 4, .minibatches = kMiniBatches});
  const Versions versions = prove(schedule).versions;
  for (int stage = 0; stage < 4; ++stage) {
    const auto& actions = schedule.workers[static_cast<std::size_t>(stage)];
    const auto& weights = versions.workers[static_cast<std::size_t>(stage)];
    int replays = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].kind != ActionKind::Recompute) continue;
      ++replays;
      EXPECT_EQ(actions[i + 1].kind, ActionKind::Backward);
      EXPECT_EQ(actions[i + 1].minibatch, actions[i].minibatch);
      EXPECT_EQ(weights[i].key, (WeightKey{.version = actions[i].minibatch}));
      EXPECT_EQ(weights[i + 1].key, weights[i].key);
    }
    EXPECT_EQ(replays, stage == 3 ? 0 : kMiniBatches);
  }
}

/// Stage k keeps the inputs of N−k mini-batches, and the activations of the one that goes back.
TEST(FeaturesReplay, HoldsInputsOfManyAndActivationsOfOne) {
  constexpr int kStages = 5, kActivation = 100, kInput = 1;
  std::vector<StageCost> costs = equal_costs(kStages);
  for (StageCost& stage : costs) {
    stage.activation_bytes = kActivation;
    stage.input_bytes = kInput;
  }
  const Schedule schedule =
      schedule_of("features_replay", "{}", {.stages = kStages, .minibatches = 40});
  const Simulation simulation = simulate(prove(schedule), costs, ideal_hardware(kStages));
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    const MemoryUse& peak = simulation.workers[stage].peak;
    EXPECT_EQ(peak.activations, kActivation);
    EXPECT_GE(peak.boundaries, (kStages - static_cast<int>(stage)) * kInput);
  }
  EXPECT_EQ(simulation.seconds_per_minibatch(), 4) << "two forwards and a backward";
}

TEST(PipeDream, WithRoomForAllInFlightIsAsWithoutABound) {
  for (const PipelineShape& shape : kShapes)
    for (const char* stashing : {"true", "false"}) {
      const std::string options = concat("{weight_stashing: ", stashing);
      EXPECT_EQ(
          schedule_of("pipedream", concat(options, ", in_flight: ", shape.stages, "}"), shape),
          schedule_of("pipedream", concat(options, "}"), shape));
    }
}

TEST(PipeDream, WithABoundInFlightNeverHasMore) {
  for (const PipelineShape& shape : kShapes)
    for (int most = 1; most <= 4; ++most) {
      const Schedule schedule = schedule_of("pipedream", concat("{in_flight: ", most, "}"), shape);
      prove(schedule);
      std::map<std::pair<int, int>, int> held, largest;  // (replica, stage)
      for (const auto& worker : schedule.workers)
        for (const Action& action : worker) {
          const std::pair place(action.replica, action.stage);
          if (action.kind == ActionKind::Forward)
            largest[place] = std::max(largest[place], ++held[place]);
          if (action.kind == ActionKind::Backward) --held[place];
        }
      for (const auto& [place, count] : largest)
        EXPECT_EQ(count, std::min(most, shape.stages - place.second));
    }
}

}  // namespace
}  // namespace pipewright
