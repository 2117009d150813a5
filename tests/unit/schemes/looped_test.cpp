// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B and zero-bubble schedules against PyTorch's orders for two workers with two
// stages each, its makespans, and the papers' bubbles.
#include <gtest/gtest.h>

#include <map>

#include "core/base/as_size.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "core/schedule/slots.h"
#include "core/system/file.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

std::string golden_text(const std::string& name) {
  return read_file(source_dir() / "tests/golden/schedule" / name);
}

Schedule of_workers(const std::string& scheme, int workers, int microbatches, int chunks = 1,
                    int minibatches = 1) {
  const std::string options = chunks == 1 ? "{}" : concat("{chunks: ", chunks, "}");
  const SchemeReading reading(scheme, options);
  const PipelineShape shape{.stages = workers * chunks,
                            .microbatches = microbatches,
                            .minibatches = minibatches,
                            .placement = reading.scheme->placement(workers * chunks)};
  EXPECT_EQ(shape.workers(), workers);
  return reading.scheme->schedule(shape);
}

int makespan(const Schedule& schedule) {
  return slot_times(schedule).makespan;
}

/// Slots in which a worker that has begun and not ended does nothing, of the worst one.
int idle_within(const Schedule& schedule) {
  const SlotTimes times = slot_times(schedule);
  int most = 0;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    int busy = 0, end = 0;
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const int slots = slots_of(schedule.workers[w][i].kind);
      busy += slots;
      end = std::max(end, times.start[w][i] + slots);
    }
    most = std::max(most, end - times.start[w].front() - busy);
  }
  return most;
}

/// Most forwards of one worker whose weights' gradient is still to be made.
int most_held(const Schedule& schedule) {
  int most = 0;
  for (const auto& worker : schedule.workers) {
    int held = 0;
    for (const Action& action : worker) {
      if (action.kind == ActionKind::Forward) most = std::max(most, ++held);
      if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeight) --held;
    }
  }
  return most;
}

TEST(Interleaved, HasPyTorchsOrder) {
  EXPECT_EQ(render_pytorch_csv(prove(of_workers("interleaved", 2, 4, 2))),
            golden_text("pytorch_interleaved_1f1b.csv"));
}

TEST(ZeroBubbleH1, WithTwoStagesPerWorkerHasPyTorchsOrder) {
  EXPECT_EQ(render_pytorch_csv(prove(of_workers("zb_h1", 2, 4, 2))),
            golden_text("pytorch_zb1p.csv"));
}

struct Makespan {
  int workers, microbatches;
  double one_f_one_b, interleaved, zb1p;  ///< in forwards of a worker
};

TEST(LoopedSchedules, TakeAsLongAsPyTorchs) {  // F = I = W = 1 for all of a worker's stages
  for (const Makespan& each :
       {Makespan{4, 8, 33, 28.5, 25.5}, {4, 16, 57, 52.5, 49.5}, {8, 32, 117, 106.5, 99.5}}) {
    const auto [p, m, one_f_one_b, interleaved, zb1p] = each;
    EXPECT_EQ(makespan(of_workers("one_f_one_b", p, m)), one_f_one_b);
    EXPECT_EQ(makespan(of_workers("interleaved", p, m, 2)), 2 * interleaved);
    EXPECT_EQ(makespan(of_workers("zb_h1", p, m, 2)), 2 * zb1p);
  }
}

TEST(Interleaved, HasTheBubbleOfItsPaper) {  // (p−1)/(v·m+p−1) of the whole
  for (const int p : {2, 3, 4})
    for (const int v : {2, 3, 4})
      for (const int m : {p, 2 * p, 4 * p}) {
        const int whole = makespan(of_workers("interleaved", p, m, v)), busy = 3 * v * m;
        EXPECT_EQ((whole - busy) * (v * m + p - 1), (p - 1) * whole) << p << " " << v << " " << m;
      }
}

TEST(Interleaved, WithOneStagePerWorkerIsOneForwardOneBackward) {
  const PipelineShape shape{.stages = 4, .replicas = 2, .microbatches = 6, .minibatches = 3};
  EXPECT_EQ(schedule_of("interleaved", "{chunks: 1}", shape),
            schedule_of("one_f_one_b", "{}", shape));
}

TEST(Interleaved, PlacesStagesInTurnOrSaysHow) {
  EXPECT_EQ(SchemeReading("interleaved", "{chunks: 3}").scheme->placement(6),
            (std::vector{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(SchemeReading("interleaved", "{}").scheme->placement(5), (std::vector{0, 1, 2, 0, 1}));
  try {
    schedule_of("interleaved", "{}", {.stages = 4, .microbatches = 4, .placement = {0, 0, 1, 1}});
    FAIL() << "another placement was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_STREQ(error.what(),
                 "pipeline.placement is [0, 0, 1, 1]; interleaved with 2 stages per worker "
                 "(scheme.chunks) needs [0, 1, 0, 1], which is its default");
  }
}

TEST(Interleaved, WantsWholeRounds) {
  try {
    schedule_of("interleaved", "{}", {.stages = 4, .microbatches = 5});
    FAIL() << "five micro-batches were accepted for two workers";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("so expected is a multiple of 2"), std::string::npos);
  }
}

TEST(ZeroBubbleH1, HasAThirdOfTheBubbleAndTheMemoryOfOneForwardOneBackward) {
  for (const int p : {2, 4, 8}) {
    const int m = 4 * p;
    const Schedule schedule = of_workers("zb_h1", p, m), plain = of_workers("one_f_one_b", p, m);
    EXPECT_EQ(makespan(schedule), 3 * m + p - 1);  // (p−1)(F+B−W) with B = I = W = F
    EXPECT_EQ(makespan(plain), 3 * m + 3 * (p - 1));
    EXPECT_EQ(most_held(schedule), p);
    EXPECT_EQ(most_held(plain), p);
  }
}

TEST(ZeroBubbleH2, HasNoBubbleForTwiceTheMemory) {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p - 1, 2 * p, 4 * p})
      for (const int minibatches : {1, 3}) {
        const Schedule schedule = of_workers("zb_h2", p, m, 1, minibatches);
        EXPECT_EQ(idle_within(schedule), 0) << p << " " << m;
        EXPECT_EQ(most_held(schedule), 2 * p - 1) << p << " " << m;
      }
}

TEST(ZeroBubble, UpdatesAStageOnceItsOwnGradientIsComplete) {
  for (const char* scheme : {"zb_h1", "zb_h2"}) {
    const Schedule schedule = of_workers(scheme, 4, 8, 1, 2);
    for (const auto& worker : schedule.workers)
      for (std::size_t i = 0; i < worker.size(); ++i)
        if (worker[i].kind == ActionKind::Update) {
          EXPECT_EQ(worker[i - 1].kind, ActionKind::BackwardWeight);
          EXPECT_EQ(worker[i - 1].microbatch, 7);
        }
  }
}

TEST(ZeroBubble, IsDrawnWithBothHalves) {
  const std::string text = render_text(of_workers("zb_h1", 2, 2));
  EXPECT_NE(text.find("b input gradient   W weight gradient"), std::string::npos) << text;
  EXPECT_EQ(text.find("relay"), std::string::npos) << text;
  const std::string csv = render_csv(prove(of_workers("zb_h1", 2, 2)));
  EXPECT_NE(csv.find(",weight-only backward,0,0,0,1,1,0,0,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace pipewright
