// SPDX-License-Identifier: Apache-2.0
// PipeDream's partitioner against every plan there is, and against plans worked out by hand.
#include "core/cost/pipedream_partition.h"
#include "core/drawing/render_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/error.h"
#include "core/cost/cost.h"

namespace pipewright::test {
namespace {

using Cost = PipeDreamRules::Cost;
using Stages = std::vector<PipeDreamStage>;

Profile layers(const std::vector<double>& seconds) {
  Profile profile{.model = "test", .timed = true};
  for (std::size_t i = 0; i < seconds.size(); ++i)
    profile.layers.push_back({.name = std::to_string(i), .forward = seconds[i]});
  return profile;
}

/// The formulas as the paper and the code state them, of one level.
double predicted(const Profile& profile, const PipeDreamRules& rules, const Stages& stages) {
  const double bandwidth = rules.levels[0].bandwidth;
  double slowest = 0;
  for (const PipeDreamStage& stage : stages) {
    double compute = 0, weights = 0;
    if (stage.begin == 0)
      compute -= sent_gradient(std::span(profile.layers).first(stage.end)).backward;
    for (std::size_t i = stage.begin; i < stage.end; ++i) {
      compute += profile.layers[i].forward + profile.layers[i].backward;
      weights += static_cast<double>(profile.layers[i].parameter_bytes);
    }
    const double m = stage.replicas;
    const bool paper = rules.cost == Cost::Paper;
    slowest = std::max(slowest, paper ? std::max(compute, 2 * (m - 1) * weights / bandwidth) / m
                                      : (compute + 4 * (m - 1) * weights / (m * bandwidth)) / m);
    const auto bytes = [&](std::size_t layer) {
      return 2 * static_cast<double>(profile.layers[layer].output_bytes) / bandwidth;
    };
    const bool first = stage.begin == 0, last = stage.end == profile.layers.size();
    if (paper && !first) slowest = std::max(slowest, bytes(stage.begin - 1));
    if (!paper && rules.boundaries) {
      if (!first) slowest = std::max(slowest, bytes(stage.begin - 1) / m);
      if (!last && !first) slowest = std::max(slowest, bytes(stage.end - 1) / m);
    }
  }
  return slowest;
}

/// The least of all plans for layers from `begin` on.
double best_of(const Profile& profile, const PipeDreamRules& rules, std::size_t begin, int workers,
               Stages& so_far) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t end = begin + 1; end <= profile.layers.size(); ++end)
    for (int replicas = 1; replicas <= workers; ++replicas) {
      const bool last = end == profile.layers.size();
      if (last != (replicas == workers)) continue;
      so_far.push_back({begin, end, replicas});
      best = std::min(best, last ? predicted(profile, rules, so_far)
                                 : best_of(profile, rules, end, workers - replicas, so_far));
      so_far.pop_back();
    }
  return best;
}

TEST(PipeDreamPartition, IsAsGoodAsTryingEveryPlan) {
  std::mt19937 random(7);
  for (int round = 0; round < 120; ++round) {
    std::vector<double> seconds(1 + random() % 6);
    for (double& time : seconds) time = static_cast<double>(1 + random() % 20);
    Profile profile = layers(seconds);
    for (LayerCost& layer : profile.layers) {
      layer.backward = static_cast<double>(random() % 20);
      layer.backward_weight = layer.backward / 2;
      layer.parameters = static_cast<std::int64_t>(random() % 2);
      layer.parameter_bytes = static_cast<std::int64_t>(random() % 40);
      layer.output_bytes = static_cast<std::int64_t>(random() % 20);
    }
    const int workers = static_cast<int>(1 + random() % 5);
    const PipeDreamRules rules{.cost = round % 3 == 0 ? Cost::Paper : Cost::Code,
                               .boundaries = round % 3 == 2,
                               .levels = {{workers, 2.0}}};
    const PipeDreamPlan plan = pipedream_partition(profile, rules);
    Stages none;
    EXPECT_DOUBLE_EQ(plan.seconds, best_of(profile, rules, 0, workers, none));
    EXPECT_DOUBLE_EQ(plan.seconds, predicted(profile, rules, plan.stages));
  }
}

/// As `simulate` counts: the layers before the first with parameters make no gradient of the data.
TEST(PipeDreamPartition, OfOneWorkerTakesTheTimeOfAStage) {
  Profile profile = layers({1, 6, 2, 3});
  for (LayerCost& layer : profile.layers) layer.backward = 2 * layer.forward;
  for (const std::size_t linear : {1U, 3U}) {
    profile.layers[linear].parameters = 10;
    profile.layers[linear].backward_weight = profile.layers[linear].forward;
  }
  const StageCost whole = stage_costs(profile, std::vector<std::int64_t>{4}).front();
  for (const Cost cost : {Cost::Paper, Cost::Code}) {
    const auto plan = pipedream_partition(profile, {.cost = cost, .levels = {{1}, {1}}});
    EXPECT_DOUBLE_EQ(plan.seconds, whole.forward + whole.backward);
    EXPECT_DOUBLE_EQ(plan.seconds, 36 - 2 - 6) << "the first layer's, and half of the second's";
  }
}

TEST(PipeDreamPartition, OfMicroBatchesIsThatOfTheirMiniBatch) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    Profile part = layers(std::vector<double>(1 + random() % 6, 1));
    for (LayerCost& layer : part.layers) {
      layer.backward = static_cast<double>(random() % 20);
      layer.parameter_bytes = static_cast<std::int64_t>(random() % 40);
      layer.output_bytes = static_cast<std::int64_t>(random() % 20);
    }
    PipeDreamRules rules{.cost = round % 2 == 0 ? Cost::Paper : Cost::Code,
                         .boundaries = true,
                         .levels = {{static_cast<int>(1 + random() % 5), 2.0}, {2, 1.0}}};
    Profile whole = part;
    for (LayerCost& layer : whole.layers) {
      layer.forward *= 4;
      layer.backward *= 4;
      layer.output_bytes *= 4;
    }
    const PipeDreamPlan expected = pipedream_partition(whole, rules);
    rules.microbatches = 4;
    const PipeDreamPlan plan = pipedream_partition(part, rules);
    EXPECT_EQ(plan.seconds, expected.seconds);
    EXPECT_EQ(plan.stages, expected.stages);
  }
}

TEST(PipeDreamPartition, IsDataParallelWhereMessagesAreFree) {
  for (const Cost cost : {Cost::Paper, Cost::Code}) {
    const auto plan = pipedream_partition(layers({5, 3, 4}), {.cost = cost, .levels = {{4}, {2}}});
    EXPECT_DOUBLE_EQ(plan.seconds, 12.0 / 8);
  }
}

TEST(PipeDreamPartition, DoesNotReplicateWeightsThatAreSlowToExchange) {
  Profile profile = layers({6, 2});  // much computation, then many weights, as VGG has them
  profile.layers[1].parameter_bytes = 1000;
  const auto plan = pipedream_partition(profile, {.cost = Cost::Paper, .levels = {{4, 1.0}}});
  EXPECT_EQ(plan.stages, (Stages{{0, 1, 3}, {1, 2, 1}}));
  EXPECT_DOUBLE_EQ(plan.seconds, 2);
}

TEST(PipeDreamPartition, KeepsTrafficInsideTheFasterLevel) {
  Profile profile = layers({4, 4});
  for (LayerCost& layer : profile.layers) layer.parameter_bytes = 1000;
  profile.layers[0].output_bytes = 1;
  const auto plan =
      pipedream_partition(profile, {.cost = Cost::Paper, .levels = {{2, 1e9}, {2, 1.0}}});
  EXPECT_EQ(plan.stages, (Stages{{0, 1, 2}, {1, 2, 2}}));
  EXPECT_DOUBLE_EQ(plan.seconds, 2);
}

TEST(PipeDreamPartition, OfHundredsOfLayersTakesSecondsNotHours) {
  std::mt19937 random(3);
  Profile profile = layers(std::vector<double>(370, 1));
  for (LayerCost& layer : profile.layers) {
    layer.backward = static_cast<double>(random() % 100);
    layer.parameter_bytes = static_cast<std::int64_t>(random() % 1000);
    layer.output_bytes = static_cast<std::int64_t>(random() % 1000);
  }
  const auto one = pipedream_partition(profile, {.levels = {{64, 1e3}}});
  const auto two = pipedream_partition(profile, {.levels = {{8, 1e4}, {8, 1e3}}});
  EXPECT_LE(two.seconds, one.seconds) << "its inner links are faster";
  int workers = 0;
  for (const PipeDreamStage& stage : one.stages) workers += stage.replicas;
  EXPECT_EQ(workers, 64);
}

TEST(PipeDreamPartition, WhatWouldTakeHoursIsRefused) {
  const Profile profile = layers(std::vector<double>(3000, 1));
  try {
    pipedream_partition(profile, {.levels = {{256}, {2}}});
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(std::string(error.what()).find("of 3000 layers on these levels takes about"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(pipedream_partition(profile, {.levels = {{4096}, {4096}, {4096}}}), Error);
}

TEST(PipeDreamPartition, SaysThatUnequalReplicasAreOnlyReported) {
  const Profile profile = layers({6, 2});
  const std::string unequal = render_plan(profile, {{{0, 1, 3}, {1, 2, 1}}, 2});
  EXPECT_NE(unequal.find("only reported"), std::string::npos);
  const std::string equal = render_plan(profile, {{{0, 1, 2}, {1, 2, 2}}, 2});
  EXPECT_NE(equal.find("pipeline.stages: 2, replicas: 2"), std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
