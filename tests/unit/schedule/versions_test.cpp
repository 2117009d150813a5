// SPDX-License-Identifier: Apache-2.0
// Which weights a pass reads, when a prediction is made, and when a copy may go.
#include "core/schedule/versions.h"
#include "core/schedule/weights_used.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

/// One stage that goes through these actions; a letter is a pass or update, then its mini-batch.
Schedule one_stage(const std::vector<std::pair<char, Weights>>& passes) {
  Schedule schedule = empty_schedule({.minibatches = 9});
  int forwards = 0, backwards = 0, updates = 0;
  for (const auto& [letter, weights] : passes) {
    if (letter == 'F') schedule.workers[0].push_back({.minibatch = forwards++, .weights = weights});
    if (letter == 'B')
      schedule.workers[0].push_back(
          {.kind = ActionKind::Backward, .minibatch = backwards++, .weights = weights});
    if (letter == 'U')
      schedule.workers[0].push_back({.kind = ActionKind::Update, .minibatch = updates++});
  }
  return schedule;
}

const Weights kLatest = Weights::latest();
const Weights kStashed = Weights::of_forward();
using Keys = std::vector<WeightKey>;

std::vector<ActionWeights> resolved(const Schedule& schedule) {
  return resolve_versions(schedule, PassIndex(schedule)).workers.at(0);
}

std::string versions_refusal(const Schedule& schedule) {
  try {
    resolve_versions(schedule, PassIndex(schedule));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    return error.what();
  }
  return "accepted";
}

TEST(Versions, LatestFollowsTheUpdates) {
  const auto weights = resolved(one_stage(
      {{'F', kLatest}, {'F', kLatest}, {'B', kLatest}, {'U', {}}, {'B', kLatest}, {'U', {}}}));
  EXPECT_EQ(weights[1].key, (WeightKey{0, 0, 0}));
  EXPECT_EQ(weights[4].key, (WeightKey{1, 0, 0}));
  EXPECT_EQ(weights[3].latest, 0);
  EXPECT_EQ(weights[5].latest, 1);
}

TEST(Versions, AnUpdateIsInPlaceUnlessTheOldVersionIsStillNeeded) {
  const auto latest = resolved(one_stage(
      {{'F', kLatest}, {'F', kLatest}, {'B', kLatest}, {'U', {}}, {'B', kLatest}, {'U', {}}}));
  EXPECT_TRUE(latest[3].in_place);
  const auto stashed = resolved(one_stage(
      {{'F', kLatest}, {'F', kLatest}, {'B', kStashed}, {'U', {}}, {'B', kStashed}, {'U', {}}}));
  EXPECT_FALSE(stashed[3].in_place);
  EXPECT_EQ(stashed[4].key, (WeightKey{0, 0, 0}));
  EXPECT_EQ(stashed[4].frees, (Keys{{0, 0, 0}}));
  EXPECT_TRUE(stashed[5].in_place);
}

TEST(Versions, TheLatestIsNeverFreed) {
  for (const auto& weights : resolved(one_stage({{'F', kLatest}, {'B', kStashed}, {'U', {}}})))
    EXPECT_TRUE(weights.frees.empty());
}

Schedule comparing(Schedule schedule) {
  schedule.updates_compare = true;
  return schedule;
}

TEST(Versions, AnUpdateThatComparesKeepsWhatItsForwardHasRead) {
  // F0 F1 B0 U0 B1 U1 with the latest weights: B1 reads version 1, F1 has read version 0.
  const Schedule schedule = one_stage(
      {{'F', kLatest}, {'F', kLatest}, {'B', kLatest}, {'U', {}}, {'B', kLatest}, {'U', {}}});
  const auto plain = resolved(schedule), weights = resolved(comparing(schedule));
  EXPECT_TRUE(plain[3].in_place);
  EXPECT_FALSE(plain[5].read.has_value());
  EXPECT_FALSE(weights[3].in_place);
  EXPECT_FALSE(weights[3].read.has_value());  // F0 has read the version that U0 is applied to
  EXPECT_EQ(weights[5].read, (WeightKey{0, 0, 0}));
  EXPECT_EQ(weights[5].frees, (Keys{{0, 0, 0}}));
  EXPECT_TRUE(weights[5].in_place);
  EXPECT_EQ(resolve_versions(schedule, PassIndex(schedule)).stages[0][0].copies, 1);
  EXPECT_EQ(resolve_versions(comparing(schedule), PassIndex(schedule)).stages[0][0].copies, 2);
}

TEST(Versions, AnUpdateThatComparesKeepsAPrediction) {
  const Weights ahead = Weights::latest(2);
  const auto weights = resolved(comparing(one_stage({{'F', ahead}, {'B', kLatest}, {'U', {}}})));
  EXPECT_EQ(weights[2].read, (WeightKey{0, 2, 0}));
  EXPECT_EQ(weights[2].frees, (Keys{{0, 2, 0}}));
  EXPECT_TRUE(weights[0].frees.empty());
}

TEST(Versions, AnUpdateCannotCompareWithSeveralVersions) {
  Schedule schedule = comparing(empty_schedule({.microbatches = 2, .minibatches = 2}));
  schedule.workers[0] = {
      {.minibatch = 0, .microbatch = 0}, {.minibatch = 0, .microbatch = 1},
      {.minibatch = 1, .microbatch = 0}, {.kind = ActionKind::Update, .minibatch = 0},
      {.minibatch = 1, .microbatch = 1}, {.kind = ActionKind::Update, .minibatch = 1}};
  EXPECT_NE(versions_refusal(schedule).find("versions 0 and 1"), std::string::npos)
      << versions_refusal(schedule);
  schedule.updates_compare = false;
  EXPECT_EQ(versions_refusal(schedule), "accepted");
}

/// A gradient that waits for two updates is two updates staler than at its own.
TEST(Versions, WaitingAddsToTheStalenessOfAGradient) {
  // F0 F1 B0 U0 B1 U1 F2 B2 U2 F3 B3 U3: at their own updates they are 0, 1, 0 and 0 updates old.
  Schedule schedule = one_stage({{'F', kLatest},
                                 {'F', kLatest},
                                 {'B', kLatest},
                                 {'U', {}},
                                 {'B', kLatest},
                                 {'U', {}},
                                 {'F', kLatest},
                                 {'B', kLatest},
                                 {'U', {}},
                                 {'F', kLatest},
                                 {'B', kLatest},
                                 {'U', {}}});
  schedule.gradient_delay = 2;
  const auto weights = resolved(schedule);
  EXPECT_EQ(weights[8].staleness, 2);
  EXPECT_EQ(weights[11].staleness, 3);
}

/// What waits when a schedule ends is applied in the one that follows, as stale as it was.
TEST(Versions, AGradientThatWaitsOverADrainKeepsItsStaleness) {
  // F0 F1 B0 U0 B1 U1: at their own updates they are 0 and 1 updates old.
  Schedule schedule = one_stage(
      {{'F', kLatest}, {'F', kLatest}, {'B', kLatest}, {'U', {}}, {'B', kLatest}, {'U', {}}});
  schedule.gradient_delay = 3;
  const auto waiting = [&] { return resolve_versions(schedule, PassIndex(schedule)).waiting; };
  EXPECT_EQ(waiting(), (std::vector<std::vector<int>>{{0, 1}}));
  schedule.waiting = {{7, 0, 1}};
  EXPECT_EQ(waiting(), (std::vector<std::vector<int>>{{1, 0, 1}}));
  EXPECT_EQ(resolved(schedule)[3].staleness, 7 + 3);
  EXPECT_EQ(resolved(schedule)[5].staleness, 0 + 3);
}

TEST(Versions, RatesFollowTheStalenessOfTheOldestForward) {
  // F0 F1 B0 U0 F2 B1 U1 B2 U2: U0 is of version 0, U1 one update late, U2 one update late.
  const Schedule schedule = one_stage({{'F', kLatest},
                                       {'F', kLatest},
                                       {'B', kLatest},
                                       {'U', {}},
                                       {'F', kLatest},
                                       {'B', kLatest},
                                       {'U', {}},
                                       {'B', kLatest},
                                       {'U', {}}});
  const auto weights = resolved(schedule);
  EXPECT_EQ(weights[3].staleness, 0);
  EXPECT_EQ(weights[6].staleness, 1);
  const auto factor = [](int staleness) { return 1.0 / (10 + staleness); };
  const auto actions = with_rates_by_staleness(schedule, factor).workers[0];
  EXPECT_EQ(actions[3].scale, 1.0 / 10);
  EXPECT_EQ(actions[6].scale, 1.0 / 11);
  EXPECT_EQ(actions[8].scale, 1.0 / 11);
  EXPECT_EQ(actions[0].scale, 1);
}

TEST(Versions, APredictionIsMadeOnceAndGoesWithItsLastUse) {
  const Weights ahead = Weights::latest(2);
  const auto weights = resolved(
      one_stage({{'F', ahead}, {'F', ahead}, {'B', kStashed}, {'U', {}}, {'B', kStashed}}));
  EXPECT_TRUE(weights[0].makes);
  EXPECT_FALSE(weights[1].makes);
  EXPECT_FALSE(weights[4].makes);
  EXPECT_TRUE(weights[2].frees.empty());
  EXPECT_EQ(weights[4].frees, (Keys{{0, 2, 0}}));
  EXPECT_TRUE(weights[3].in_place) << "nobody needs the version it was predicted from";
}

TEST(Versions, PredictionsOfOtherDistancesOrRulesAreOtherTensors) {
  Schedule schedule = one_stage(
      {{'F', Weights::latest(1, 0)}, {'F', Weights::latest(1, 1)}, {'F', Weights::latest(2, 0)}});
  schedule.rules.resize(2);
  for (const auto& weights : resolved(schedule)) EXPECT_TRUE(weights.makes);
}

TEST(Versions, ARuleMeansNothingWhereNothingIsPredicted) {
  Schedule schedule = one_stage({{'F', Weights::latest(0, 1)}});
  schedule.rules.resize(2);
  EXPECT_EQ(resolved(schedule)[0].key, (WeightKey{0, 0, 0}));
  EXPECT_FALSE(resolved(schedule)[0].makes);
}

TEST(Versions, CountsTheCopiesAliveAtOnce) {
  const auto copies = [](const Schedule& schedule) {
    return resolve_versions(schedule, PassIndex(schedule)).stages[0][0].copies;
  };
  EXPECT_EQ(copies(one_stage({{'F', kLatest}, {'B', kLatest}, {'U', {}}})), 1);
  EXPECT_EQ(copies(one_stage({{'F', kLatest},
                              {'F', kLatest},
                              {'B', kStashed},
                              {'U', {}},
                              {'B', kStashed},
                              {'U', {}}})),
            2);
  EXPECT_EQ(copies(one_stage({{'F', Weights::latest(1)},
                              {'F', Weights::latest(2)},
                              {'B', kStashed},
                              {'U', {}},
                              {'B', kStashed},
                              {'U', {}}})),
            3);
}

TEST(Versions, RefusesAVersionOfTheFutureOrOfBefore) {
  EXPECT_NE(
      versions_refusal(one_stage({{'F', Weights::of_version(1)}})).find("0F0 asks for version 1"),
      std::string::npos);
  EXPECT_NE(
      versions_refusal(one_stage({{'F', Weights::of_version(-1)}})).find("0F0 asks for version -1"),
      std::string::npos);
}

TEST(Versions, RefusesAPredictionThatComesTooLate) {
  const std::string text = versions_refusal(
      one_stage({{'F', kLatest}, {'B', kLatest}, {'U', {}}, {'F', Weights::of_version(0, 2)}}));
  EXPECT_NE(text.find("0F1 predicts 2 steps from version 0, but the newest version is 1 by then"),
            std::string::npos)
      << text;
}

TEST(Versions, RefusesTheWeightsOfAForwardThatHasNotRun) {
  EXPECT_NE(
      versions_refusal(one_stage({{'B', kStashed}, {'F', kLatest}})).find("0B0 computes with the"),
      std::string::npos);
  EXPECT_NE(versions_refusal(one_stage({{'F', kStashed}})).find("0F0 computes with the"),
            std::string::npos);
}

TEST(Versions, AGradientWithoutAnUpdateLandsNowhere) {
  const auto passes = weights_used(prove(evaluation_schedule({.stages = 2})), 0);
  ASSERT_EQ(passes.size(), 2u);
  for (const PassWeights& pass : passes) EXPECT_EQ(pass.applied_to, -1);
}

TEST(Versions, StagesOnOneWorkerCountTheirOwnUpdates) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .minibatches = 6, .placement = {0, 0}}, {.flush = false});
  for (int minibatch = 0; minibatch < 6; ++minibatch)
    for (const PassWeights& pass : weights_used(prove(schedule), minibatch)) {
      const bool early = pass.action.stage == 0 && pass.action.kind == ActionKind::Forward;
      EXPECT_EQ(pass.key.version, early ? std::max(0, minibatch - 1) : minibatch);
    }
}

}  // namespace
}  // namespace pipewright
