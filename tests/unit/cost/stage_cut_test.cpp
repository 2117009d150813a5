// SPDX-License-Identifier: Apache-2.0
// The best cut of a profile: with messages that take time, and workers whose memory ends.
#include "core/cost/stage_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/error.h"
#include "core/drawing/render_profile.h"

namespace pipewright::test {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Layers of these forward times, without bytes.
Profile timed_layers(const std::vector<double>& seconds) {
  Profile profile{.model = "test", .timed = true};
  for (std::size_t i = 0; i < seconds.size(); ++i)
    profile.layers.push_back({.name = std::to_string(i), .forward = seconds[i]});
  return profile;
}

/// One version of the weights, one forward kept.
StageMemories memories_of(const Profile& profile, int stages) {
  return {profile,
          std::vector<std::vector<StageMoment>>(
              static_cast<std::size_t>(stages),
              {{.learns = true, .kept = 1, .versions = 1, .added = 0}}),
          0};
}

Sizes cut(const Profile& profile, const CutRules& rules) {
  return best_cut(profile, memories_of(profile, rules.stages), rules);
}

/// All cuts into non-empty blocks.
std::vector<Sizes> all_cuts(std::size_t layers, std::size_t parts) {
  std::vector<bool> here(layers - 1, false);
  std::fill(here.end() - static_cast<std::ptrdiff_t>(parts - 1), here.end(), true);
  std::vector<Sizes> cuts;
  do {
    Sizes sizes{1};
    for (const bool end : here)
      if (end)
        sizes.push_back(1);
      else
        ++sizes.back();
    cuts.push_back(sizes);
  } while (std::next_permutation(here.begin(), here.end()));
  return cuts;
}

/// By the definition: forward, backward, and what goes out at both ends. The layers of the first
/// stage up to the first with parameters have a backward for their weights only.
double slowest(const Profile& profile, const CutRules& rules, const Sizes& sizes) {
  double most = 0;
  std::size_t at = 0;
  bool first = true;  // no layer so far has parameters
  for (const std::int64_t size : sizes) {
    double seconds = 0;
    const auto bytes = [&](std::size_t layer) {
      return static_cast<double>(profile.layers[layer].output_bytes) / rules.bandwidth +
             rules.latency;
    };
    if (at > 0) seconds += bytes(at - 1);
    for (std::int64_t i = 0; i < size; ++i, ++at) {
      const LayerCost& layer = profile.layers[at];
      seconds += layer.forward + (first ? layer.backward_weight : layer.backward);
      first = first && layer.parameters == 0;
    }
    first = false;
    if (at < profile.layers.size()) seconds += bytes(at - 1);
    most = std::max(most, seconds);
  }
  return most;
}

std::int64_t most_memory(const Profile& profile, const Sizes& sizes) {
  std::int64_t most = 0;
  for (const StageMemory& stage :
       memories_of(profile, static_cast<int>(sizes.size())).of_cut(sizes))
    most = std::max(most, stage.total());
  return most;
}

Profile random_profile(std::mt19937& random) {
  std::vector<double> seconds(2 + random() % 11);
  for (double& time : seconds) time = static_cast<double>(random() % 20);
  Profile profile = timed_layers(seconds);
  for (LayerCost& layer : profile.layers) {
    layer.parameters = static_cast<std::int64_t>(random() % 3);
    layer.backward_weight = layer.parameters > 0 ? static_cast<double>(random() % 20) : 0;
    layer.backward = layer.backward_weight + static_cast<double>(random() % 20);
    layer.output_bytes = static_cast<std::int64_t>(random() % 30);
    layer.activation_bytes = static_cast<std::int64_t>(random() % 30);
    layer.peak_bytes = static_cast<std::int64_t>(random() % 30);
    layer.parameter_bytes = static_cast<std::int64_t>(random() % 30);
  }
  return profile;
}

// torchgpipe's tests of balance_by_time and balance_by_size.
TEST(StageCut, GivesTheCutsThatAreKnown) {
  EXPECT_EQ(cut(timed_layers({1, 2, 3, 4, 5, 6}), {.stages = 2}), (Sizes{4, 2}));
  EXPECT_EQ(cut(timed_layers({0, 0}), {.stages = 2}), (Sizes{1, 1}));
  EXPECT_EQ(cut(timed_layers({.01, .02, .03, .04, .05, .06}), {.stages = 2}), (Sizes{4, 2}));
  EXPECT_EQ(cut(timed_layers({6, 5, 4, 3, 2, 1}), {.stages = 2}), (Sizes{2, 4}));
}

TEST(StageCut, ByMemoryGivesTheCutsThatAreKnown) {
  Profile profile = timed_layers({0, 0, 0, 0, 0, 0});
  for (int i = 0; i < 6; ++i) profile.layers[static_cast<std::size_t>(i)].activation_bytes = 1 + i;
  EXPECT_EQ(cut(profile, {.by = CutRules::By::Memory, .stages = 2}), (Sizes{4, 2}));
  for (LayerCost& layer : profile.layers) layer.activation_bytes = 7 - layer.activation_bytes;
  EXPECT_EQ(cut(profile, {.by = CutRules::By::Memory, .stages = 2}), (Sizes{2, 4}));
}

TEST(StageCut, IsNeverWorseThanAnyOther) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const Profile profile = random_profile(random);
    const std::size_t parts = 1 + random() % profile.layers.size();
    const CutRules rules{.stages = static_cast<int>(parts), .bandwidth = 2, .latency = 1};
    double best = std::numeric_limits<double>::infinity();
    for (const Sizes& sizes : all_cuts(profile.layers.size(), parts))
      best = std::min(best, slowest(profile, rules, sizes));
    EXPECT_DOUBLE_EQ(slowest(profile, rules, cut(profile, rules)), best);
  }
}

TEST(StageCut, OfThoseThatFitIsNeverWorseThanAnyOther) {
  std::mt19937 random(6);
  int impossible = 0;
  for (int round = 0; round < 100; ++round) {
    const Profile profile = random_profile(random);
    const std::size_t parts = 1 + random() % profile.layers.size();
    const CutRules rules{.stages = static_cast<int>(parts),
                         .memory = static_cast<std::int64_t>(60 + random() % 200)};
    double best = std::numeric_limits<double>::infinity();
    for (const Sizes& sizes : all_cuts(profile.layers.size(), parts))
      if (most_memory(profile, sizes) <= rules.memory)
        best = std::min(best, slowest(profile, rules, sizes));
    if (best == std::numeric_limits<double>::infinity()) {
      EXPECT_THROW(cut(profile, rules), Error);
      ++impossible;
      continue;
    }
    const Sizes found = cut(profile, rules);
    EXPECT_LE(most_memory(profile, found), rules.memory);
    EXPECT_DOUBLE_EQ(slowest(profile, rules, found), best);
  }
  EXPECT_GT(impossible, 5);
  EXPECT_LT(impossible, 95);
}

TEST(StageCut, AvoidsABoundaryThatIsSlowToCross) {
  Profile profile = timed_layers({1, 1, 1, 1});
  profile.layers[1].output_bytes = 10;
  EXPECT_EQ(cut(profile, {.stages = 2}), (Sizes{2, 2}));
  EXPECT_EQ(cut(profile, {.stages = 2, .bandwidth = 1}), (Sizes{1, 3}));
}

TEST(StageCut, SaysWhichStageDoesNotFit) {
  Profile profile = timed_layers({1, 1, 1});
  profile.layers[1].activation_bytes = 4096;
  try {
    cut(profile, {.stages = 2, .memory = 1024});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_STREQ(error.what(),
                 "no cut into 2 stages fits into 1.0 KiB per worker (pipeline.cut.memory): in the "
                 "cut that needs least, "
                 "stage 1 (1 … 2) needs 4.0 KiB; take more stages or smaller micro-batches");
  }
}

TEST(StageCut, ByTimeNeedsTimes) {
  Profile profile = timed_layers({1, 1});
  profile.timed = false;
  EXPECT_THROW(cut(profile, {.stages = 2}), Error);
}

TEST(StageCut, IsExplainedInATable) {
  Profile profile = timed_layers({.010, .020, .030});
  profile.layers[1].output_bytes = 2048;
  profile.layers[2].parameters = 1500;
  profile.layers[2].parameter_bytes = 6000;
  const CutRules rules{.stages = 2};
  EXPECT_EQ(render_cut(profile, memories_of(profile, 2), rules, Sizes{2, 1}),
            R"( stage  layers             time  share  parameters    memory  sends on
     0       2  0 … 1  30.00 ms   50 %           0       0 B   2.0 KiB
     1       1  2      30.00 ms   50 %       1.5 k  13.7 KiB

stage 0 (0 … 1) limits: 30.00 ms where 30.00 ms each would be ideal; imbalance 0 %
)");
}

}  // namespace
}  // namespace pipewright::test
