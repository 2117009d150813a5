// SPDX-License-Identifier: Apache-2.0
// DualPipe and DualPipeV: times and activations of the authors' formulas, the order of their
// programs, and that one is the other cut in half.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/as_size.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "core/schedule/slots.h"
#include "core/simulation/simulate.h"
#include "core/system/file.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

/// Of one mini-batch on p workers, with `microbatches` in all.
Schedule dualpipe(int p, int microbatches) {
  return schedule_of("dualpipe", "{}",
                     {.stages = p, .replicas = 2, .microbatches = microbatches / 2});
}
Schedule dualpipe_v(int p, int microbatches) {
  return schedule_of("dualpipe_v", "{}", {.stages = 2 * p, .microbatches = microbatches});
}

/// Seconds of the passes of a stage, binary fractions.
struct PairTimes {
  double forward = 1, input = 1, weight = 1, overlap = 0;
  std::optional<double> own_pair = {};  ///< in the costs of each stage

  double backward() const { return input + weight; }
  double pair() const {
    return own_pair.value_or(forward + backward() - overlap * std::min(forward, backward()));
  }
};

Simulation dual_pipe_simulation(const Schedule& schedule, const PairTimes& times = {}) {
  prove(schedule);
  std::vector<StageCost> costs(as_size(schedule.shape.stages));
  for (StageCost& stage : costs)
    stage = {.forward = times.forward,
             .backward = times.backward(),
             .backward_input = times.input,
             .backward_weight = times.weight,
             .fused_pair = times.own_pair,
             .activation_bytes = 1};
  Hardware hardware = ideal_hardware(schedule.shape.workers());
  hardware.overlap = times.overlap;
  return simulate(prove(schedule), costs, hardware);
}

void expect_of_each_worker(const Schedule& schedule, double makespan, double idle,
                           std::int64_t held) {
  const Simulation simulation = dual_pipe_simulation(schedule);
  EXPECT_EQ(simulation.makespan, makespan);
  for (const WorkerReport& worker : simulation.workers) {
    EXPECT_EQ(worker.idle, idle);
    EXPECT_EQ(worker.peak.activations, held);
  }
}

/// What the authors' order gives if a forward and both halves of a backward take 1 each.
TEST(DualPipe, TakesAsLongAndHoldsAsMuchAsTheAuthorsOrder) {
  expect_of_each_worker(dualpipe(8, 20), 66, 6, 9);
  expect_of_each_worker(dualpipe(4, 8), 26, 2, 5);
  expect_of_each_worker(dualpipe_v(4, 10), 66, 6, 9);
  expect_of_each_worker(dualpipe_v(8, 16), 110, 14, 17);
}

/// (p/2−1)(F∥B + B − 3W) on p workers, where half as many workers of a V count as p and B is whole;
/// of the worker that idles most, if a forward takes as long as the gradient of the input, that of
/// the weights no longer, and a pair no longer than its passes in turn.
TEST(DualPipe, IdlesAsTheAuthorsFormulaSays) {
  const auto most_idle = [](const Simulation& simulation) {
    return std::ranges::max(simulation.workers, {}, &WorkerReport::idle).idle;
  };
  for (const PairTimes& times :
       {PairTimes{}, PairTimes{.overlap = 0.5}, PairTimes{2, 2, 2}, PairTimes{2, 2, 2, 0.25},
        PairTimes{.weight = 0.5}, PairTimes{.weight = 0.25, .overlap = 0.5},
        PairTimes{.own_pair = 2.375}, PairTimes{.weight = 0.5, .own_pair = 1.5},
        PairTimes{.weight = 0.5, .overlap = 0.25, .own_pair = 1.875}, PairTimes{4, 4, 1, 0, 5.5},
        PairTimes{4, 4, 3, 0, 10.25}})
    for (const int p : {2, 4, 8}) {
      const double each = times.pair() + times.backward() - 3 * times.weight;
      for (const int m : {2 * p, 2 * p + 4, 4 * p})
        EXPECT_EQ(most_idle(dual_pipe_simulation(dualpipe(p, m), times)), (p / 2 - 1) * each)
            << p << " workers, " << m;
      for (const int m : {2 * p, 2 * p + 3, 4 * p})
        EXPECT_EQ(most_idle(dual_pipe_simulation(dualpipe_v(p, m), times)), (p - 1) * each)
            << "V, " << p << " workers, " << m;
    }
}

/// A worker of the first half holds the stages of the two replicas that a worker of the V holds of
/// the way forth and the way back.
TEST(DualPipe, IsDualPipeVOnEachHalfOfItsWorkers) {
  for (const int p : {2, 4, 8}) {
    const int m = 2 * p + 2;
    const Schedule whole = dualpipe(p, m), half = dualpipe_v(p / 2, m / 2);
    for (int w = 0; w < p; ++w) {
      const int place = std::min(w, p - 1 - w);
      const auto passes = [](const Schedule& schedule, int worker) {
        std::vector<Action> all;
        for (const Action& action : schedule.workers[as_size(worker)])
          if (is_pass(action.kind)) all.push_back(action);
        return all;
      };
      std::vector<Action> one = passes(whole, w), other = passes(half, place);
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        const bool near = (one[i].replica == 0) == (w < p / 2);
        EXPECT_EQ(other[i].stage, near ? place : p - 1 - place);
        EXPECT_EQ(one[i].stage, one[i].replica == 0 ? w : p - 1 - w);
        EXPECT_EQ(one[i].kind, other[i].kind);
        EXPECT_EQ(one[i].microbatch, other[i].microbatch);
        EXPECT_EQ(one[i].with_next, other[i].with_next);
      }
    }
  }
}

TEST(DualPipeV, HasPyTorchsOrder) {
  EXPECT_EQ(render_pytorch_csv(prove(dualpipe_v(2, 4))),
            read_file(source_dir() / "tests/golden/schedule/pytorch_dualpipev.csv"));
}

TEST(DualPipe, RunsWithFewerMicroBatchesThanFillIt) {
  for (const int p : {2, 4, 6})
    for (int m = 1; m <= p; ++m) {
      EXPECT_NO_THROW(prove(dualpipe(p, 2 * m))) << p << " workers, " << m;
      EXPECT_NO_THROW(prove(dualpipe_v(p, m))) << "V, " << p << " workers, " << m;
    }
  EXPECT_NO_THROW(
      prove(schedule_of("dualpipe_v", "{}", {.stages = 7, .microbatches = 9, .minibatches = 2})));
}

/// The grid has 3 slots for a pair, as for its halves in turn.
TEST(DualPipe, TakesAsManySlotsAsSecondsWithUnitTimes) {
  EXPECT_EQ(slot_times(dualpipe(8, 20)).makespan, 66);
  EXPECT_EQ(slot_times(dualpipe_v(8, 16)).makespan, 110);
}

}  // namespace
}  // namespace pipewright
