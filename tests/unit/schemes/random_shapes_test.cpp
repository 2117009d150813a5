// SPDX-License-Identifier: Apache-2.0
// Whatever the shape, every scheme with every option makes a schedule that can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/versions.h"
#include "tests/unit/schedule/naive_reading.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr int kShapesPerScheme = 20;

/// Stages 1–6, micro-batches 1–5, mini-batches 1–9, replicas 1–3; half of them on shared workers.
PipelineShape random_shape(std::mt19937& random) {
  auto upto = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  PipelineShape shape{.stages = 1 + upto(6),
                      .replicas = 1 + upto(3),
                      .microbatches = 1 + upto(5),
                      .minibatches = 1 + upto(9)};
  if (upto(2) == 0)
    for (int stage = 0; stage < shape.stages; ++stage)
      shape.placement.push_back(upto(shape.stages));
  return shape;
}

std::string described(const PipelineShape& shape) {
  return concat(shape.stages, " stages, ", shape.replicas, " replicas, ", shape.microbatches,
                " micro-batches, ", shape.minibatches, " mini-batches, placement ",
                testing::PrintToString(shape.placement));
}

/// Calls `check` with schedules of random shapes; shapes a scheme says it cannot run are left out.
template <class Check>
void for_random_schedules(const Check& check, int shapes = kShapesPerScheme) {
  std::vector<SchemeCase> cases = every_scheme();
  std::ranges::copy(schemes_that_share_workers(), std::back_inserter(cases));
  for (const SchemeCase& each : cases) {
    std::mt19937 random(7);
    int ran = 0;
    for (int i = 0; i < shapes; ++i) {
      PipelineShape shape = random_shape(random);
      if (shares_workers(each.name)) shape = shape_that_shares(each.name, shape);
      SCOPED_TRACE(concat(each.name, " ", each.options, ": ", described(shape)));
      try {
        check(schedule_of(each.name, each.options, shape));
        ++ran;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::Experiment) FAIL() << error.what();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(ran, 0) << each.name << " runs in no shape";
  }
}

TEST(EveryScheme, IsValidInAnyShape) {
  for_random_schedules([](const Schedule& schedule) {
    const std::vector<ActionPlace> order = prove(schedule).order;
    EXPECT_EQ(naive::fault(schedule), "");
    EXPECT_EQ(naive::fault_of_order(schedule, order), "");
  });
}

void expect_valid_with_recomputation(const Schedule& schedule) {
  for (const Recomputation which : {Recomputation::Always, Recomputation::ExceptLast}) {
    const Schedule again = with_recomputation(schedule, which);
    EXPECT_EQ(naive::fault(again), "");
    EXPECT_EQ(naive::fault_of_order(again, prove(again).order), "");
  }
}

TEST(EveryScheme, IsValidWithRecomputationInAFewShapes) {
  for_random_schedules(expect_valid_with_recomputation, kShapesPerScheme / 4);
}

TEST(EveryScheme, IsValidWithRecomputationInAnyShape) {
  for_random_schedules(expect_valid_with_recomputation);
}

TEST(EveryScheme, IsTheSameScheduleEachTime) {
  std::mt19937 random(8);
  for (const SchemeCase& each : every_scheme()) {
    const PipelineShape shape{.stages = each.name == "data_parallel" ? 1 : 4,
                              .replicas = 2,
                              .microbatches = 4,
                              .minibatches = 5};
    EXPECT_EQ(schedule_of(each.name, each.options, shape),
              schedule_of(each.name, each.options, shape));
  }
}

/// Of replicas that share workers, all that do.
TEST(EveryScheme, GivesReplicasTheSameWork) {
  for_random_schedules([](const Schedule& schedule) {
    const auto each = static_cast<std::size_t>(schedule.shape.workers_per_replica());
    const int sharing =
        schedule.shape.replicas / (schedule.shape.workers() / static_cast<int>(each));
    for (std::size_t w = each; w < schedule.workers.size(); ++w) {
      std::vector<Action> work = schedule.workers[w];
      for (Action& action : work) action.replica %= sharing;
      ASSERT_EQ(work, schedule.workers[w % each]);
    }
  });
}

TEST(EveryScheme, UpdatesEveryStageOncePerMiniBatchInOrder) {
  for_random_schedules([](const Schedule& schedule) {
    std::map<std::pair<int, int>, int> updates;
    for (const auto& worker : schedule.workers)
      for (const Action& action : worker)
        if (action.kind == ActionKind::Update) {
          ASSERT_EQ(action.minibatch, (updates[{action.stage, action.replica}]++));
        }
    for (const auto& [stage, count] : updates) ASSERT_EQ(count, schedule.shape.minibatches);
  });
}

/// A copy that is made is freed, and nothing is read after it was freed.
TEST(EveryScheme, FreesWhatItKeeps) {
  for_random_schedules([](const Schedule& schedule) {
    const Versions versions = prove(schedule).versions;
    std::map<std::pair<int, int>, std::set<WeightKey>> kept;
    for (std::size_t w = 0; w < schedule.workers.size(); ++w)
      for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
        const Action& action = schedule.workers[w][i];
        const ActionWeights& weights = versions.workers[w][i];
        std::set<WeightKey>& alive = kept[{action.stage, action.replica}];
        if (alive.empty())
          for (int before = 0; before <= schedule.earlier_of(action.stage); ++before)
            alive.insert(WeightKey{.version = -before});
        if (action.kind == ActionKind::Update) {
          if (weights.in_place) alive.erase({weights.latest, 0, 0});
          alive.insert({weights.latest + 1, 0, 0});
        } else if (action.kind != ActionKind::Reduce) {
          if (weights.makes) alive.insert(weights.key);
          ASSERT_TRUE(alive.contains(weights.key)) << action_name(action);
        }
        for (const WeightKey& key : weights.frees) ASSERT_EQ(alive.erase(key), 1u);
      }
    for (const auto& [stage, alive] : kept) {
      const int left = 1 + schedule.earlier_of(stage.first);
      ASSERT_EQ(std::ssize(alive), left) << "stage " << stage.first;
      ASSERT_EQ(alive.rbegin()->version - alive.begin()->version, left - 1) << "the newest ones";
    }
  });
}

TEST(Evaluation, HasForwardsOnlyInAnyShape) {
  std::mt19937 random(9);
  for (int i = 0; i < 100; ++i) {
    const Schedule schedule = evaluation_schedule(random_shape(random));
    SCOPED_TRACE(described(schedule.shape));
    EXPECT_EQ(naive::fault_of_order(schedule, prove(schedule).order), "");
    EXPECT_EQ(naive::fault(schedule), "");
    for (const auto& worker : schedule.workers)
      for (const Action& action : worker) ASSERT_EQ(action.kind, ActionKind::Forward);
  }
}

}  // namespace
}  // namespace pipewright
