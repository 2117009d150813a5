// SPDX-License-Identifier: Apache-2.0
// Micro-batches in schemes without a flush: 1F1B over all of them, one update per M.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr int kFewMiniBatches = 8;

/// Calls `check` with every pass of a long schedule, and how many micro-batches came before its
/// own.
template <class Check>
void for_passes(const std::string& scheme, const std::string& options, int stages, int microbatches,
                const Check& check) {
  const Schedule schedule =
      schedule_of(scheme, options,
                  {.stages = stages, .microbatches = microbatches, .minibatches = kFewMiniBatches});
  for (int minibatch = 0; minibatch < kFewMiniBatches; ++minibatch)
    for (const PassWeights& pass : weights_used(prove(schedule), minibatch))
      check(pass, pass.action.minibatch * microbatches + pass.action.microbatch);
}

template <class Check>
void for_shapes(const Check& check) {
  for (int stages = 1; stages <= 5; ++stages)
    for (int microbatches = 1; microbatches <= 5; ++microbatches) {
      SCOPED_TRACE(concat(stages, " stages, ", microbatches, " micro-batches"));
      check(stages, microbatches);
    }
}

/// PipeOptim's formula for its update interval P: s_i = ⌊i/P⌋ − ⌊b/P⌋, b = max(0, i−w) backwards
/// done, w = N−1−k.
TEST(MicroBatches, ExactPredictionCountsPendingUpdates) {
  for_shapes([](int stages, int microbatches) {
    for_passes("pipeoptim", "{s_mode: exact}", stages, microbatches,
               [&](const PassWeights& pass, int i) {
                 if (pass.action.kind != ActionKind::Forward) return;
                 const int done = std::max(0, i - (stages - 1 - pass.action.stage));
                 EXPECT_EQ(pass.key.ahead, i / microbatches - done / microbatches);
                 EXPECT_EQ(pass.key.version + pass.key.ahead, pass.applied_to);
               });
  });
}

TEST(MicroBatches, ConstantPredictionCountsAsIfThePipeHadNeverBeenEmpty) {
  for_shapes([](int stages, int microbatches) {
    for_passes("pipeoptim", "{s_mode: constant}", stages, microbatches,
               [&](const PassWeights& pass, int i) {
                 if (pass.action.kind != ActionKind::Forward) return;
                 const int depth = stages - 1 - pass.action.stage;
                 const double before = std::floor(static_cast<double>(i - depth) / microbatches);
                 EXPECT_EQ(pass.key.ahead, i / microbatches - static_cast<int>(before));
                 if (pass.action.microbatch == 0) {  // ⌈D/M⌉
                   EXPECT_EQ(pass.key.ahead, (depth + microbatches - 1) / microbatches);
                 }
                 if (i >= depth) {
                   EXPECT_EQ(pass.key.version + pass.key.ahead, pass.applied_to);
                 }
               });
  });
}

TEST(MicroBatches, OfOneMiniBatchEndInOneUpdate) {
  for (const char* scheme : {"pipedream", "spectrain", "pipeoptim", "xpipe"})
    for_passes(scheme, "{}", 3, 4, [](const PassWeights& pass, int) {
      EXPECT_EQ(pass.applied_to, pass.action.minibatch);
    });
}

TEST(MicroBatches, PipeDreamsBackwardsReadWhatTheirForwardsRead) {
  std::map<std::pair<int, int>, WeightKey> forward;
  for_passes("pipedream", "{}", 4, 3, [&](const PassWeights& pass, int i) {
    if (pass.action.kind == ActionKind::Forward) forward[{pass.action.stage, i}] = pass.key;
    EXPECT_EQ(pass.key, (forward.at({pass.action.stage, i})));
  });
}

TEST(PipeDream2BW, ComputesWithTheVersionBeforeOnEveryStage) {
  for (int stages = 1; stages <= 5; ++stages)
    for_passes("pipedream_2bw", "{}", stages, 5, [](const PassWeights& pass, int) {
      EXPECT_EQ(pass.key, (WeightKey{std::max(0, pass.action.minibatch - 1), 0, 0}));
    });
}

TEST(PipeDream2BW, NeedsAMicroBatchPerStage) {
  auto run = [](int microbatches) {
    return schedule_of("pipedream_2bw", "{}", {.stages = 4, .microbatches = microbatches});
  };
  EXPECT_NO_THROW(run(4));
  try {
    run(3);
    FAIL() << "three micro-batches were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("pipeline.microbatches is 3; pipedream_2bw needs at least as "
                                   "many as pipeline.stages, 4"),
              std::string::npos);
  }
}

TEST(DataParallel, HasOneStage) {
  try {
    schedule_of("data_parallel", "{}", {.stages = 2});
    FAIL() << "two stages were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
  }
}

/// The bellwether of a mini-batch predicts; its siblings share that very tensor, in each pass.
TEST(XPipe, SiblingsOfABellwetherShareItsPrediction) {
  for_shapes([](int stages, int microbatches) {
    std::map<std::array<int, 3>, WeightKey> bellwethers;
    for_passes("xpipe", "{}", stages, microbatches, [&](const PassWeights& pass, int) {
      const std::array<int, 3> family{pass.action.kind == ActionKind::Forward, pass.action.stage,
                                      pass.action.minibatch};
      if (pass.action.microbatch == 0) bellwethers[family] = pass.key;
      EXPECT_EQ(pass.key, bellwethers.at(family));
    });
  });
}

TEST(XPipe, MakesEachPredictionOnce) {
  const Schedule schedule =
      schedule_of("xpipe", "{}", {.stages = 4, .microbatches = 4, .minibatches = 6});
  const Versions versions = prove(schedule).versions;
  std::map<std::pair<int, WeightKey>, int> made;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      const ActionWeights& weights = versions.workers[w][i];
      if (weights.makes) {
        ++made[{action.stage, weights.key}];
        EXPECT_EQ(action.microbatch, 0) << action_name(action, 4);
      }
    }
  EXPECT_GE(made.size(), 4u * 6u);
  for (const auto& [prediction, times] : made) EXPECT_EQ(times, 1);
}

TEST(XPipe, LooksAsFarAheadAsItsPaperSays) {  // N = 4, T = 4
  for_passes("xpipe", "{}", 4, 4, [](const PassWeights& pass, int) {
    const bool forward = pass.action.kind == ActionKind::Forward;
    const int stage = pass.action.stage;
    EXPECT_EQ(pass.key.ahead, forward && stage == 0 ? 2 : 1);  // 6/4 rounds away from zero
  });
}

}  // namespace
}  // namespace pipewright
