// SPDX-License-Identifier: Apache-2.0
// Schemes whose workers hold one stage on the way forth and one on the way back: their times in
// virtual time and the activations that they hold, against their authors' program and papers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/as_size.h"
#include "core/cost/cost_table.h"
#include "core/drawing/render.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "core/system/file.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

/// Seconds of the passes of one stage. Binary fractions, so that their sums are exact.
struct Times {
  double forward = 1, input = 1, weight = 1;

  double all() const { return forward + input + weight; }
};

struct Outcome {
  double span = 0;               ///< of the worker whose first pass and last end are furthest apart
  std::int64_t activations = 0;  ///< of the worker that holds most at once
};

/// One mini-batch on p workers. Each stage keeps `bytes` of activations for each micro-batch.
Outcome outcome(const std::string& scheme, int stages, int microbatches, const Times& times = {},
                std::int64_t bytes = 1) {
  PipelineShape shape{.stages = stages, .microbatches = microbatches};
  shape.placement = SchemeReading(scheme, "{}").scheme->placement(stages);
  const Schedule schedule = schedule_of(scheme, "{}", shape);
  prove(schedule);
  std::vector<StageCost> costs(as_size(stages));
  for (StageCost& stage : costs) {
    stage.forward = times.forward;
    stage.backward_input = times.input;
    stage.backward_weight = times.weight;
    stage.backward = times.input + times.weight;
    stage.activation_bytes = bytes;
  }
  const Simulation simulation =
      simulate(prove(schedule), costs, ideal_hardware(schedule.shape.workers()));
  Outcome result;
  for (std::size_t worker = 0; worker < simulation.workers.size(); ++worker) {
    const auto& spans = simulation.spans[worker];
    result.span = std::max(result.span, spans.back().end - spans.front().begin);
    result.activations = std::max(result.activations, simulation.workers[worker].peak.activations);
  }
  return result;
}

/// What the authors' program for V-Half and V-Min and PyTorch's ScheduleZBVZeroBubble give for unit
/// costs: span of the longest worker, most stages' activations.
struct Golden {
  int workers, microbatches;
  double zb_v, v_half, v_min, one_f_one_b;
  std::int64_t held_by_zb_v, held_by_v_half, held_by_v_min, held_by_one_f_one_b;
};
constexpr Golden kGoldens[] = {{4, 8, 48, 53, 59, 66, 8, 6, 4, 8},
                               {4, 16, 96, 101, 107, 114, 8, 6, 4, 8},
                               {8, 16, 96, 113, 123, 138, 16, 10, 8, 16},
                               {8, 32, 192, 209, 219, 234, 16, 10, 8, 16}};

TEST(VShapes, TakeAsLongAndHoldAsMuchAsTheirAuthorsSchedules) {
  for (const Golden& each : kGoldens) {
    SCOPED_TRACE(concat(each.workers, " workers, ", each.microbatches, " micro-batches"));
    const auto expect = [](const Outcome& found, double span, std::int64_t held) {
      EXPECT_EQ(found.span, span);
      EXPECT_EQ(found.activations, held);
    };
    const int p = each.workers, m = each.microbatches;
    expect(outcome("zb_v", 2 * p, m), each.zb_v, each.held_by_zb_v);
    expect(outcome("v_half", 2 * p, m), each.v_half, each.held_by_v_half);
    expect(outcome("v_min", 2 * p, m), each.v_min, each.held_by_v_min);
    // Its p stages are those of a worker here: twice the time, twice the activations.
    expect(outcome("one_f_one_b", p, m, {2, 2, 2}, 2), each.one_f_one_b, each.held_by_one_f_one_b);
  }
}

TEST(VShapes, HoldTheActivationsOfTheirPapers) {  // in micro-batches: p, ⌊(p+2)/2⌋, ⌊(p+4)/3⌋
  for (int p = 1; p <= 12; ++p)
    for (const int m : {2 * p, 4 * p}) {
      SCOPED_TRACE(concat(p, " workers, ", m, " micro-batches"));
      EXPECT_EQ(outcome("zb_v", 2 * p, m).activations, 2 * p);
      EXPECT_EQ(outcome("v_half", 2 * p, m).activations, p == 1 ? 2 : 2 * ((p + 2) / 2));
      EXPECT_EQ(outcome("v_min", 2 * p, m).activations, p == 1 ? 2 : 2 * ((p + 4) / 3));
    }
}

TEST(ZeroBubbleV, NeverIdlesBetweenFirstPassAndLast) {
  for (int p = 1; p <= 8; ++p)
    for (const int m : {2 * p - 1, 2 * p, 5 * p})
      EXPECT_EQ(outcome("zb_v", 2 * p, m).span, 6 * m) << p << " workers, " << m;
}

TEST(ZeroBubbleV, HasPyTorchsOrder) {
  PipelineShape shape{.stages = 4, .microbatches = 4, .placement = v_placement(4)};
  EXPECT_EQ(render_pytorch_csv(prove(schedule_of("zb_v", "{}", shape))),
            read_file(source_dir() / "tests/golden/schedule/pytorch_zbv.csv"));
}

/// What a micro-batch more takes, in the steady state.
double period(const std::string& scheme, int workers, const Times& times) {
  const int few = 4 * workers, many = 8 * workers;
  return (outcome(scheme, 2 * workers, many, times).span -
          outcome(scheme, 2 * workers, few, times).span) /
         (many - few);
}

TEST(VShapes, NeverIdleInTheSteadyStateOfEqualPasses) {
  for (int p = 2; p <= 8; ++p)
    for (const char* scheme : {"zb_v", "v_half", "v_min"})
      EXPECT_EQ(period(scheme, p, {}), 6) << scheme << ", " << p << " workers";
}

/// W + 2I ≥ 2F and W + 2F ≥ 2I; V-Min waits in some of these.
TEST(VHalf, NeverIdlesInTheSteadyStateIfHalvesFillWhatForwardsLeave) {
  for (const Times& times : {Times{1, 1.25, 0.75}, Times{1, 0.75, 1.25}, Times{1, 0.5, 1.5},
                             Times{1, 1, 2}, Times{1.5, 1, 1}})
    for (int p = 2; p <= 8; ++p)
      EXPECT_EQ(period("v_half", p, times), 2 * times.all())
          << times.forward << " " << times.input << " " << times.weight << ", " << p;
  EXPECT_GT(period("v_half", 4, {1, 2, 0.5}), 7) << "W + 2F < 2I";
  EXPECT_GT(period("v_half", 4, {2, 1, 0.5}), 7) << "W + 2I < 2F";
  EXPECT_GT(period("v_min", 4, {1, 1.25, 0.75}), 6) << "what suffices for V-Half";
}

TEST(VShapes, TakeMicroBatchesInOrder) {
  for (const char* scheme : {"zb_v", "v_half", "v_min"})
    for (int stages = 1; stages <= 20; ++stages)
      for (const int m : {1, 2, 3, 7, 24}) {
        PipelineShape shape{.stages = stages, .microbatches = m};
        shape.placement = v_placement(stages);
        const Schedule schedule = schedule_of(scheme, "{}", shape);
        ASSERT_NO_THROW(prove(schedule)) << scheme << ", " << stages << " stages, " << m;
        std::map<std::pair<ActionKind, int>, int> next;
        for (const auto& worker : schedule.workers)
          for (const Action& action : worker)
            if (is_pass(action.kind)) {
              const int expected = next[{action.kind, action.stage}]++;
              ASSERT_EQ(action.microbatch, expected) << scheme << ", " << stages << " stages";
            }
      }
}

TEST(VPlacement, GoesForthAndBack) {
  EXPECT_EQ(v_placement(6), (std::vector{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(v_placement(5), (std::vector{0, 1, 2, 2, 1}));
  EXPECT_EQ(v_placement(1), (std::vector{0}));
  EXPECT_EQ(v_placement(8, 2), (std::vector{0, 1, 1, 0, 0, 1, 1, 0}));
  for (const char* scheme : {"zb_v", "v_half", "v_min"}) {
    EXPECT_EQ(SchemeReading(scheme, "{}").scheme->placement(4), (std::vector{0, 1, 1, 0}));
    try {
      schedule_of(scheme, "{}", {.stages = 4, .microbatches = 4, .placement = {0, 1, 0, 1}});
      ADD_FAILURE() << scheme << " accepted another placement";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Experiment);
      EXPECT_EQ(error.message(), concat("pipeline.placement is [0, 1, 0, 1]; ", scheme,
                                        " needs [0, 1, 1, 0], which is its default"));
    }
  }
}

}  // namespace
}  // namespace pipewright
