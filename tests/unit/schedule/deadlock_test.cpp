// SPDX-License-Identifier: Apache-2.0
// What is said of a schedule that stops: the way from the first action that waits to the root,
// which is marked.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/builders.h"
#include "tests/unit/schedule/refusal.h"

namespace pipewright {
namespace {

void expect_said(const Schedule& schedule, const std::string& place, const std::string& message,
                 const std::string& marked) {
  const std::string text = refusal(schedule);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            concat(place, ": the schedule is not valid: ", message));
  EXPECT_NE(text.find(marked), std::string::npos) << text;
}

/// One mini-batch, all forwards before all backwards, one worker a stage.
Schedule gpipe(int stages, int microbatches) {
  return pipeline_schedule({.stages = stages, .microbatches = microbatches}, {.fill_drain = true});
}

std::vector<Action>& worker(Schedule& schedule, int number) {
  return schedule.workers[static_cast<std::size_t>(number)];
}

/// The passes of one stage in that order ("F1": the forward of micro-batch 1), then its update.
std::vector<Action> one_stage(int stage, const std::vector<std::string>& passes) {
  std::vector<Action> actions;
  for (const std::string& pass : passes)
    actions.push_back({.kind = pass[0] == 'F' ? ActionKind::Forward : ActionKind::Backward,
                       .stage = stage,
                       .microbatch = pass[1] - '0',
                       .loss = 1});
  actions.push_back({.kind = ActionKind::Update, .stage = stage});
  return actions;
}

TEST(Deadlock, OfAReversedOrderIsTheBackwardThatComesBeforeItsForward) {
  Schedule schedule = gpipe(2, 4);  // F0 F1 F2 F3 B3 B2 B1 B0 U on both
  std::ranges::reverse(worker(schedule, 1));
  std::ranges::rotate(worker(schedule, 1), worker(schedule, 1).begin() + 1);  // the update is last
  expect_said(
      schedule, "worker 1, action 0",
      "deadlock: 0B0.3 can never start, because it waits for 1B0.3 of worker 1, queued behind "
      "1B0.0, which waits for 1F0.0, which comes later on the same worker (0B0.3 is the backward "
      "of "
      "stage 0, mini-batch 0, micro-batch 3)",
      "▶B0.0◀");
}

TEST(Deadlock, ThroughAnotherWorkerIsOfTheActionThatNeedsWhatItsOwnWorkerDoesLater) {
  Schedule schedule = gpipe(2, 1);  // F B U on both
  std::swap(worker(schedule, 0)[0], worker(schedule, 0)[1]);
  expect_said(schedule, "worker 0, action 0",
              "deadlock: 0B0 can never start, because it waits for 1B0 of worker 1 and so for 0F0, "
              "which comes later on worker 0 itself (0B0 is the backward of stage 0, mini-batch 0)",
              "▶B0◀");
}

TEST(Deadlock, OfManyWorkersNamesTheFirstAndTheRoot) {
  Schedule schedule = gpipe(7, 2);
  std::swap(worker(schedule, 6)[1], worker(schedule, 6)[3]);  // F0 B0 B1 F1
  expect_said(schedule, "worker 6, action 2",
              "deadlock: 0B0.1 can never start, because it waits for 1B0.1 of worker 1, … (4 more "
              "waits), queued behind 6B0.1, which waits for 6F0.1, which comes later on the same "
              "worker (0B0.1 is the backward of stage 0, mini-batch 0, micro-batch 1)",
              "▶B0.1◀");
}

/// Stages 0 and 2 on worker 0, 1 and 3 on worker 1.
Schedule two_rounds(std::vector<std::vector<std::pair<int, int>>> forwards) {
  Schedule schedule =
      evaluation_schedule({.stages = 4, .microbatches = 2, .placement = {0, 1, 0, 1}});
  for (std::size_t w = 0; w < forwards.size(); ++w)
    for (std::size_t i = 0; i < forwards[w].size(); ++i) {
      schedule.workers[w][i].stage = forwards[w][i].first;
      schedule.workers[w][i].microbatch = forwards[w][i].second;
    }
  return schedule;
}

TEST(Deadlock, OfACircleIsOneOfThoseInIt) {
  const Schedule right =
      two_rounds({{{0, 0}, {0, 1}, {2, 0}, {2, 1}}, {{1, 0}, {3, 0}, {1, 1}, {3, 1}}});
  EXPECT_EQ(refusal(right), "accepted");
  // Worker 0 wants micro-batch 0 of stage 1 before it makes what stage 3 wants before that.
  const Schedule wrong =
      two_rounds({{{0, 0}, {0, 1}, {2, 0}, {2, 1}}, {{1, 1}, {3, 1}, {1, 0}, {3, 0}}});
  expect_said(
      wrong, "worker 0, action 2",
      "deadlock: 2F0.0 can never start, because it waits for 1F0.0 of worker 1, queued behind "
      "3F0.1, which waits for 2F0.1 of worker 0, queued behind 2F0.0: a circle (2F0.0 is the "
      "forward of stage 2, mini-batch 0, micro-batch 0)",
      "▶2F0.0◀");
}

TEST(Deadlock, OfAFullLinkSaysWhereItsReceiverStands) {
  Schedule schedule = evaluation_schedule({.stages = 2, .microbatches = 2});
  schedule.shape.link_capacity = 1;
  std::ranges::reverse(worker(schedule, 1));
  expect_said(
      schedule, "worker 0, action 1",
      "deadlock: 0F0.1 can never start, because its link to worker 1 already holds 1 "
      "message, as many as it can, and worker 1 is stuck at 1F0.1, which waits for 0F0.1 of "
      "worker 0: a circle (0F0.1 is the forward of stage 0, mini-batch 0, micro-batch 1)",
      "▶F0.1◀");
}

/// Two stages on two workers. In turn the forward of micro-batch 1 comes first and all can run; in
/// a pair it waits for the backward beside it, whose gradient worker 1 makes after that forward
/// only.
TEST(Deadlock, OfAFusedPairThatAloneWaitsForItselfNamesBothHalves) {
  Schedule schedule = gpipe(2, 2);
  worker(schedule, 0) = one_stage(0, {"F0", "F1", "B0", "B1"});
  worker(schedule, 1) = one_stage(1, {"F0", "F1", "B0", "B1"});
  EXPECT_EQ(refusal(schedule), "accepted");
  worker(schedule, 0)[1].with_next = true;
  expect_said(schedule, "worker 0, action 1",
              "deadlock: 0F0.1 can never start, because 0B0.0 beside it waits for 1B0.0 of worker "
              "1, queued behind 1F0.1, which waits for 0F0.1 of worker 0: a circle (0F0.1 is the "
              "forward of stage 0, mini-batch 0, "
              "micro-batch 1)",
              "▶F0.1◀");
}

}  // namespace
}  // namespace pipewright
