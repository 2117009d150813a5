// SPDX-License-Identifier: Apache-2.0
// Seq1F1B: its order, its idle time and its memory, against a clock of this test's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/cost/cost_table.h"
#include "core/schedule/prove.h"
#include "core/schedule/slices.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

PipelineShape sliced(int stages, int microbatches, int slices, int minibatches = 1) {
  return {.stages = stages,
          .microbatches = microbatches * slices,
          .slices = slices,
          .minibatches = minibatches};
}

Schedule seq1f1b(const PipelineShape& shape) {
  Schedule schedule = schedule_of("seq1f1b", "{}", shape);
  prove(schedule);
  return schedule;
}

/// One pass in the paper's words: forward or not, micro-batch, slice.
using PaperStep = std::tuple<bool, int, int>;

/// The order of a stage in one mini-batch, as the paper has it: p − k − 2 + s forwards of slices,
/// one more before each backward, micro-batch after micro-batch with its last slice first.
std::vector<PaperStep> paper_order(int stages, int stage, int microbatches, int slices) {
  const int all = microbatches * slices, warm_up = stages - stage - 2 + slices;
  std::vector<PaperStep> steps;
  int forwards = 0, backwards = 0;
  const auto forward = [&] {
    if (forwards < all) steps.emplace_back(true, forwards / slices, forwards % slices);
    ++forwards;
  };
  while (forwards < warm_up) forward();
  for (; backwards < all; ++backwards) {
    forward();
    steps.emplace_back(false, backwards / slices, slices - 1 - backwards % slices);
  }
  return steps;
}

/// When the last of p stages ends if a forward of a slice takes 1 and its backward 2: each pass
/// begins when its stage is free and its neighbour and its slices before or behind have ended.
int paper_makespan(int stages, int microbatches, int slices) {
  std::vector<std::vector<PaperStep>> orders;
  for (int k = 0; k < stages; ++k) orders.push_back(paper_order(stages, k, microbatches, slices));
  std::map<std::pair<int, PaperStep>, int> ends;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<int> free(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int k = 0; k < stages; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (next[at] == orders[at].size()) continue;
      const auto [forward, micro, slice] = orders[at][next[at]];
      std::vector<std::pair<int, PaperStep>> needs;
      if (forward && k > 0) needs.push_back({k - 1, {true, micro, slice}});
      if (forward && slice > 0) needs.push_back({k, {true, micro, slice - 1}});
      if (!forward) needs.push_back({k, {true, micro, slice}});
      if (!forward && k + 1 < stages) needs.push_back({k + 1, {false, micro, slice}});
      if (!forward && slice + 1 < slices) needs.push_back({k, {false, micro, slice + 1}});
      int begin = free[at];
      bool ready = true;
      for (const auto& need : needs) {
        ready = ready && ends.contains(need);
        if (ready) begin = std::max(begin, ends.at(need));
      }
      if (!ready) continue;
      ends[{k, orders[at][next[at]++]}] = free[at] = begin + (forward ? 1 : 2);
      moved = true;
    }
  }
  for (std::size_t k = 0; k < orders.size(); ++k) EXPECT_EQ(next[k], orders[k].size()) << "stuck";
  return std::ranges::max(free);
}

struct PaperShape {
  int stages, microbatches, slices;
};
constexpr PaperShape kPaperShapes[] = {{1, 1, 1}, {1, 2, 3}, {2, 3, 3}, {3, 1, 2}, {4, 1, 4},
                                       {4, 8, 1}, {4, 8, 2}, {4, 8, 4}, {4, 2, 8}, {8, 16, 4}};

TEST(Seq1F1B, HasThePapersOrder) {
  for (const auto& [stages, microbatches, slices] : kPaperShapes) {
    const Schedule schedule = seq1f1b(sliced(stages, microbatches, slices));
    for (int k = 0; k < stages; ++k) {
      std::vector<PaperStep> steps;
      for (const Action& action : schedule.workers[static_cast<std::size_t>(k)])
        if (is_pass(action.kind))
          steps.emplace_back(action.kind == ActionKind::Forward, action.microbatch / slices,
                             action.microbatch % schedule.shape.slices);
      EXPECT_EQ(steps, paper_order(stages, k, microbatches, slices))
          << "stage " << k << " of " << stages << ", " << microbatches << " × " << slices;
    }
  }
}

TEST(Seq1F1B, IsOneForwardOneBackwardWithOneSlice) {
  for (int stages = 1; stages <= 5; ++stages)
    for (int microbatches = 1; microbatches <= 6; ++microbatches) {
      const PipelineShape shape = sliced(stages, microbatches, 1, 3);
      EXPECT_EQ(seq1f1b(shape), schedule_of("one_f_one_b", "{}", shape));
    }
}

Simulation at_unit_costs(const Schedule& schedule) {
  std::vector<StageCost> costs = equal_costs(schedule.shape.stages);
  for (StageCost& stage : costs) stage.activation_bytes = 1;
  return simulate(prove(schedule), costs, ideal_hardware(schedule.shape.workers()));
}

/// 1F1B with as many whole micro-batches, whose passes are s times as long, is idle s times as
/// long.
TEST(Seq1F1B, IsIdleForOneFillAndDrainOfASlice) {
  for (const auto& [stages, microbatches, slices] : kPaperShapes) {
    const int work = 3 * microbatches * slices;  // of a stage
    const Simulation simulation = at_unit_costs(seq1f1b(sliced(stages, microbatches, slices)));
    EXPECT_EQ(simulation.makespan, paper_makespan(stages, microbatches, slices));
    EXPECT_EQ(simulation.makespan, work + 3 * (stages - 1));
    const Simulation whole = at_unit_costs(
        schedule_of("one_f_one_b", "{}", {.stages = stages, .microbatches = microbatches}));
    EXPECT_EQ(slices * whole.makespan - work, slices * (simulation.makespan - work));
  }
}

/// In slices. A micro-batch has s of them, so p stages hold 1 + (p − 1)/s micro-batches instead of
/// p.
TEST(Seq1F1B, HoldsTheActivationsOfAsManySlicesAsThePaperSays) {
  for (const auto& [stages, microbatches, slices] : kPaperShapes) {
    const Simulation simulation = at_unit_costs(seq1f1b(sliced(stages, microbatches, slices)));
    for (int k = 0; k < stages; ++k)
      EXPECT_EQ(simulation.workers[static_cast<std::size_t>(k)].peak.activations,
                std::min(stages - 1 - k + slices, microbatches * slices))
          << "stage " << k << " of " << stages << ", " << microbatches << " × " << slices;
  }
}

TEST(Seq1F1B, UpdatesEachStageOncePerMiniBatchAfterItsLastBackward) {
  const Schedule schedule = seq1f1b(sliced(3, 2, 4, 2));
  for (const auto& actions : schedule.workers) {
    int passes = 0, updates = 0;
    for (const Action& action : actions) {
      passes += is_pass(action.kind) ? 1 : 0;
      if (action.kind != ActionKind::Update) continue;
      EXPECT_EQ(action.minibatch, updates++);
      EXPECT_EQ(passes, 2 * 8 * updates);
    }
    EXPECT_EQ(updates, 2);
  }
}

/// As TeraPipe does (Li et al., 2021): its backwards begin at the very end.
TEST(Slices, GoThroughGPipeInReverse) {
  EXPECT_NO_THROW(prove(schedule_of("gpipe", "{}", sliced(3, 2, 4, 2))));
}

TEST(Slices, AreRefusedWhereBackwardsAscend) {
  for (const char* scheme : {"one_f_one_b", "zb_h1", "pipedream", "model_parallel"}) {
    const Schedule schedule = schedule_of(scheme, "{}", sliced(3, 2, 4));
    EXPECT_NE(slice_out_of_order(schedule, PassIndex(schedule)), kNowhere) << scheme;
    EXPECT_THROW(prove(schedule), Error) << scheme;
  }
}

}  // namespace
}  // namespace pipewright
