// SPDX-License-Identifier: Apache-2.0
// Hanayo's waves: where stages are, and the idle time that notes on the paper give.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/as_size.h"
#include "core/cost/cost_table.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// P workers of 2W stages; a forward of a stage takes 1, its backward 2.
Simulation waves_of(int workers, int waves, int microbatches) {
  const SchemeReading reading("hanayo", concat("{waves: ", waves, "}"));
  PipelineShape shape{.stages = 2 * workers * waves, .microbatches = microbatches};
  shape.placement = reading.scheme->placement(shape.stages);
  EXPECT_EQ(shape.workers(), workers);
  const Schedule schedule = reading.scheme->schedule(shape);
  prove(schedule);
  std::vector<StageCost> costs = equal_costs(shape.stages);
  for (StageCost& stage : costs) stage.activation_bytes = 1;
  return simulate(prove(schedule), costs, ideal_hardware(workers));
}

/// When all is done if at every full second each worker that is free takes, of all passes whose
/// input is there, the backward of the oldest micro-batch, else the forward of the farthest stage.
int listed_makespan(int workers, int waves, int microbatches) {
  struct Task {
    bool back;
    int stage, microbatch;
    auto operator<=>(const Task&) const = default;
  };
  const int last = 2 * workers * waves - 1;
  std::vector<std::vector<Task>> left(as_size(workers));
  for (int stage = 0; stage <= last; ++stage)
    for (int m = 0; m < microbatches; ++m)
      for (const bool back : {false, true}) {
        const int place = stage % (2 * workers);
        left[as_size(std::min(place, 2 * workers - 1 - place))].push_back({back, stage, m});
      }
  std::map<Task, int> ends;
  const auto ready = [&](const Task& task, int now) {
    if (!task.back && task.stage == 0) return true;
    const Task before = !task.back          ? Task{false, task.stage - 1, task.microbatch}
                        : task.stage < last ? Task{true, task.stage + 1, task.microbatch}
                                            : Task{false, last, task.microbatch};
    const auto end = ends.find(before);
    return end != ends.end() && end->second <= now;
  };
  const auto rank = [](const Task& task) {  // the least is taken
    return task.back ? std::tuple(0, task.microbatch, 0)
                     : std::tuple(1, -task.stage, task.microbatch);
  };
  std::vector<int> free(as_size(workers), 0);
  for (int now = 0; std::ranges::any_of(left, [](const auto& tasks) { return !tasks.empty(); });
       ++now)
    for (std::size_t w = 0; w < left.size(); ++w) {
      if (free[w] > now) continue;
      auto best = left[w].end();
      for (auto task = left[w].begin(); task != left[w].end(); ++task)
        if (ready(*task, now) && (best == left[w].end() || rank(*task) < rank(*best))) best = task;
      if (best == left[w].end()) continue;
      ends[*best] = free[w] = now + (best->back ? 2 : 1);
      left[w].erase(best);
    }
  return std::ranges::max(free);
}

TEST(Hanayo, TakesAsLongAsAListOfPassesThatAreReady) {
  for (int p = 1; p <= 8; ++p)
    for (int w = 1; w <= 3; ++w)
      for (const int m : {1, p, 2 * p + 1})
        EXPECT_EQ(waves_of(p, w, m).makespan, listed_makespan(p, w, m))
            << p << " workers, " << w << " waves, " << m << " micro-batches";
}

/// 6pW s of work of each worker and 4(p−1) s of fill and drain, as with one wave; up to two
/// forwards more where several waves of four or more workers cross.
TEST(Hanayo, OfSeveralWavesIdlesForFourForwardsOfEachOtherWorkerAndAtMostTwoMore) {
  for (const int w : {2, 3})
    for (int p = 1; p <= 8; ++p) {
      const double more = waves_of(p, w, p).makespan - (6 * p * w + 4 * (p - 1));
      EXPECT_GE(more, 0) << p << " " << w;
      EXPECT_LE(more, p <= 3 ? 0 : 2) << p << " " << w;
    }
}

TEST(Hanayo, PlacesStagesInWaves) {
  EXPECT_EQ(SchemeReading("hanayo", "{waves: 2}").scheme->placement(12),
            (std::vector{0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0}));
  try {
    schedule_of("hanayo", "{waves: 2}", {.stages = 4, .placement = {0, 1, 1, 0}});
    FAIL() << "another placement was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_EQ(error.message(),
              "pipeline.placement is [0, 1, 1, 0]; hanayo with 2 waves (scheme.waves) needs "
              "[0, 0, 0, 0], which is its default");
  }
}

/// With as many micro-batches as workers: (2P−2)/(3PW+P−1). Its numerator is 4(P−1) forwards of a
/// stage in units of two, and its denominator less than the whole then, 3PW+2P−2. So it is a bound.
TEST(Hanayo, IdlesNoMoreThanTheNotesOnThePaperSay) {
  for (int p = 2; p <= 8; ++p)
    for (int w = 1; w <= 3; ++w) {
      const double noted = (2.0 * p - 2) / (3 * p * w + p - 1);
      EXPECT_LE(waves_of(p, w, p).bubble, noted) << p << " workers, " << w << " waves";
    }
}

TEST(Hanayo, OfOneWaveIdlesForFourForwardsOfEachOtherWorker) {
  for (int p = 1; p <= 8; ++p) {
    const Simulation simulation = waves_of(p, 1, p);
    EXPECT_EQ(simulation.makespan, 6 * p + 4 * (p - 1)) << p;
    EXPECT_NEAR(simulation.bubble, (2.0 * p - 2) / (3 * p + 2 * p - 2),
                tolerance::kHundredOperations);
  }
}

TEST(Hanayo, IdlesLessWithMoreWavesAndLessThanOneForwardOneBackward) {
  for (int p = 3; p <= 8; ++p) {
    const double plain = (p - 1.0) / (2 * p - 1);  // (p−1)/(m+p−1) of 1F1B
    const double one = waves_of(p, 1, p).bubble, two = waves_of(p, 2, p).bubble;
    EXPECT_LT(one, plain);
    EXPECT_LT(two, one);
    EXPECT_LT(waves_of(p, 3, p).bubble, two);
  }
}

/// Of the worker that holds most at once.
std::int64_t most_activations(const Simulation& simulation) {
  std::int64_t most = 0;
  for (const WorkerReport& worker : simulation.workers)
    most = std::max(most, worker.peak.activations);
  return most;
}

/// In micro-batches: as many as 1F1B's first stage with m = p, and less than twice that with more.
TEST(Hanayo, HoldsABoundedNumberOfActivations) {
  for (const int p : {2, 4, 8})
    for (const int w : {1, 2}) {
      EXPECT_EQ(most_activations(waves_of(p, w, p)), 2 * w * p);
      for (const int m : {4 * p, 16 * p})
        EXPECT_LT(most_activations(waves_of(p, w, m)), 2 * 2 * w * p) << p << " " << m;
    }
}

}  // namespace
}  // namespace pipewright
