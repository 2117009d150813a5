// SPDX-License-Identifier: Apache-2.0
// What prove() refuses, one reason at a time, and how it says so.
#include "core/drawing/render.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/as_size.h"
#include "core/schedule/builders.h"
#include "core/schedule/rewrites/offload.h"
#include "tests/unit/schedule/refusal.h"

namespace pipewright {
namespace {

Schedule pipeline(int stages, int microbatches = 1, int minibatches = 2, int replicas = 1) {
  return pipeline_schedule({.stages = stages,
                            .replicas = replicas,
                            .microbatches = microbatches,
                            .minibatches = minibatches},
                           {.flush = false}, latest_weights, forward_weights);
}

/// Stage 1 of 3 has a head, from whose loss stage 0 learns.
Schedule with_head() {
  std::vector<std::vector<Action>> orders(3);
  auto add = [&](ActionKind kind, int stage, int loss) {
    orders[static_cast<std::size_t>(stage)].push_back({.kind = kind, .stage = stage, .loss = loss});
  };
  for (int stage = 0; stage < 3; ++stage) add(ActionKind::Forward, stage, 2);
  add(ActionKind::Head, 1, 1);
  add(ActionKind::BackwardInput, 1, 1);
  add(ActionKind::Backward, 0, 1);
  add(ActionKind::Backward, 2, 2);
  add(ActionKind::Backward, 1, 2);
  for (int stage = 0; stage < 3; ++stage) add(ActionKind::Update, stage, 0);
  Schedule schedule = schedule_of_stages({.stages = 3}, std::move(orders));
  schedule.learns_from = {{1}, {2}, {2}};
  schedule.auxiliary = {1};
  return schedule;
}

void expect_refused(const Schedule& schedule, const std::string& reason) {
  const std::string text = refusal(schedule);
  EXPECT_NE(text.find(reason), std::string::npos) << "expected: " << reason << "\nin: " << text;
}

TEST(Prove, AcceptsWhatTheseTestsStartFrom) {
  EXPECT_EQ(refusal(pipeline(3, 2)), "accepted");
  EXPECT_EQ(refusal(pipeline(2, 2, 2, 2)), "accepted");
  EXPECT_EQ(refusal(with_head()), "accepted");
}

TEST(Prove, MarksTheCulpritInTheGridAndSaysWhereItIs) {
  Schedule schedule = pipeline(2);
  schedule.workers[1].insert(schedule.workers[1].begin() + 1, schedule.workers[1][0]);
  expect_refused(schedule,
                 "worker 1, action 1: the schedule is not valid: 1F0 happens twice (1F0 is the "
                 "forward of stage 1, "
                 "mini-batch 0)\n");
  expect_refused(schedule, "▶F0◀");
}

TEST(Prove, MarksAPassWhoseWeightsDoNotExistToo) {
  Schedule schedule = pipeline(2);
  schedule.workers[1][0].weights = Weights::of_version(5);
  expect_refused(
      schedule,
      "1F0 asks for version 5 of its stage's weights, but only 0 updates have run by then");
  expect_refused(schedule, "▶F0◀");
}

TEST(Prove, RefusesAShapeOfNothing) {
  for (int PipelineShape::*count : {&PipelineShape::stages, &PipelineShape::replicas,
                                    &PipelineShape::microbatches, &PipelineShape::minibatches}) {
    Schedule schedule = pipeline(2);
    schedule.shape.*count = 0;
    expect_refused(schedule, "at least one stage, replica, micro-batch and mini-batch");
  }
}

TEST(Prove, RefusesSlicesThatAreNoWholeMicroBatches) {
  Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 4, .slices = 2}, {.in_reverse = 2});
  EXPECT_EQ(refusal(schedule), "accepted");
  for (const int slices : {3, 0, -1, 8}) {
    schedule.shape.slices = slices;
    expect_refused(schedule,
                   concat("4 slices of a mini-batch are not whole micro-batches of ", slices));
  }
}

TEST(Prove, RefusesASliceBeforeOneThatItNeeds) {
  const Schedule right =
      pipeline_schedule({.stages = 2, .microbatches = 4, .slices = 2}, {.in_reverse = 2});
  Schedule schedule = right;
  std::swap(schedule.workers[0][2], schedule.workers[0][1]);  // another micro-batch's first slice
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule = right;
  std::swap(schedule.workers[0][0], schedule.workers[0][1]);
  expect_refused(schedule,
                 "0F0.1 comes before the forward of the slice before it, to whose keys it attends "
                 "(0F0.1 is the forward of stage 0, mini-batch 0, micro-batch 0, slice 1)\n");
  schedule = right;
  for (auto& actions : schedule.workers)
    for (Action& action : actions)
      if (action.kind == ActionKind::Backward && action.microbatch < 2)
        action.microbatch = 1 - action.microbatch;
  expect_refused(schedule,
                 "0B0.0 comes before the backward of the slice behind it, which gives its keys a "
                 "gradient (0B0.0 is the backward of stage 0, mini-batch 0, micro-batch 0, slice "
                 "0)\n");
}

TEST(Prove, RefusesASliceOnTheHost) {
  Schedule schedule =
      with_offload(pipeline_schedule({.stages = 2, .microbatches = 6}, {.fill_drain = true}), 0);
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule.shape.slices = 3;
  expect_refused(schedule, "moves keys of a slice, which other slices read meanwhile");
}

/// Only the half of a backward that makes the gradient of its input gives gradients to keys.
TEST(Prove, LetsWeightOnlyHalvesOfSlicesComeInAnyOrder) {
  const auto action = [](ActionKind kind, int slice) {
    return Action{.kind = kind, .microbatch = slice, .loss = 0};
  };
  using enum ActionKind;
  const auto of = [&](const std::vector<std::pair<ActionKind, int>>& order) {
    Schedule schedule = empty_schedule({.stages = 1, .microbatches = 2, .slices = 2});
    for (const auto& [kind, slice] : order) schedule.workers[0].push_back(action(kind, slice));
    schedule.workers[0].push_back(action(Update, 0));
    return refusal(schedule);
  };
  const std::pair first{BackwardInput, 1}, second{BackwardInput, 0};
  for (const auto& [a, b] : {std::pair{1, 0}, std::pair{0, 1}})
    EXPECT_EQ(
        of({{Forward, 0}, {Forward, 1}, first, second, {BackwardWeight, a}, {BackwardWeight, b}}),
        "accepted");
  EXPECT_NE(
      of({{Forward, 0}, {Forward, 1}, second, first, {BackwardWeight, 0}, {BackwardWeight, 1}})
          .find("comes before the backward of the slice behind it"),
      std::string::npos);
}

TEST(Prove, RefusesReplicasThatShareWorkersInAWayThatCannotRun) {
  Schedule schedule = pipeline(2, 1, 2, 2);
  schedule.shape.replica_placement = {{0, 1}, {2, 3}};
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule.shape.replica_placement = {{0, 1}};
  expect_refused(schedule, "does not name one worker for each stage of each replica");
  schedule.shape.replica_placement = {{0, 1}, {1}};
  expect_refused(schedule, "does not name one worker for each stage of each replica");
  schedule.shape.replica_placement = {{0, 1}, {-1, 0}};
  expect_refused(schedule, "does not name one worker for each stage of each replica");
  schedule.shape.replica_placement = {{0, 1}, {2, 1}};
  expect_refused(schedule,
                 "two replicas of stage 1 are on worker 1, where they can never meet at a "
                 "reduction");
  schedule.shape.replica_placement = {{0, 1}, {1, 0}};
  expect_refused(schedule, "it has actions for 4 workers; its stages and replicas need 2");
}

/// Two replicas on two workers, in opposite directions. Both workers reduce stage 0 first.
TEST(Prove, FindsReductionsThatMeetInOtherOrdersOnSharedWorkers) {
  const PipelineShape shape{.stages = 2, .replicas = 2, .replica_placement = {{0, 1}, {1, 0}}};
  std::vector<std::vector<Action>> orders;
  for (const int replica : {0, 1})
    for (const int stage : {0, 1}) {
      auto& order = orders.emplace_back();
      for (const ActionKind kind :
           {ActionKind::Forward, ActionKind::Backward, ActionKind::Reduce, ActionKind::Update})
        order.push_back({.kind = kind, .stage = stage, .replica = replica, .loss = 1});
    }
  Schedule schedule = empty_schedule(shape);
  for (const int worker : {0, 1}) {
    auto& actions = schedule.workers[as_size(worker)];
    const auto own = [&](int stage, std::size_t action) {
      const int replica = stage == worker ? 0 : 1;
      return orders[as_size(2 * replica + stage)][action];
    };
    for (const auto& [stage, action] : {std::pair(0, 0), {1, 0}, {1, 1}, {0, 1}})
      actions.push_back(own(stage, as_size(action)));
    for (const int stage : {0, 1})
      for (const std::size_t action : {2, 3}) actions.push_back(own(stage, action));
  }
  EXPECT_EQ(refusal(schedule), "accepted");
  auto& actions = schedule.workers[1];
  std::rotate(actions.begin() + 4, actions.begin() + 6, actions.end());
  expect_refused(schedule, "because its replicas never reach the same reduction");
}

TEST(Prove, RefusesPartsThatDoNotFitTheShape) {
  Schedule schedule = pipeline(2);
  schedule.workers.emplace_back();
  expect_refused(schedule, "it has actions for 3 workers; its stages and replicas need 2");
  schedule = pipeline(2);
  schedule.shape.placement = {0};
  expect_refused(schedule, "placement does not name one worker per stage");
  schedule = pipeline(2);
  schedule.learns_from.pop_back();
  expect_refused(schedule, "learns_from does not say for every stage which losses it learns from");
}

TEST(Prove, RefusesLossesThatNoStageFromThereOnMakes) {
  for (const int loss : {-1, 0, 2, 100}) {
    Schedule schedule = pipeline(2);
    schedule.learns_from[1].push_back(loss);
    expect_refused(schedule, concat("the loss of stage ", loss));
  }
}

TEST(Prove, RefusesHeadsThatAreNotBeforeTheLastStageInOrder) {
  for (const std::vector<int>& heads : {std::vector<int>{-1}, {1, 7}, {1, 2}, {1, 1}, {1, 0}}) {
    Schedule schedule = with_head();
    schedule.auxiliary = heads;
    expect_refused(schedule, "head");
  }
}

TEST(Prove, RefusesARuleThatIsNotThere) {
  Schedule schedule = pipeline(2);
  schedule.workers[0][0].weights = Weights::latest(1, 1);
  expect_refused(schedule, "worker 0, action 0 (0F0) names a");
}

TEST(Prove, RefusesALossThatAStageDoesNotLearnFrom) {
  Schedule schedule = with_head();
  for (Action& action : schedule.workers[1])
    if (action.kind == ActionKind::BackwardInput) action.kind = ActionKind::Backward;
  expect_refused(schedule,
                 "1B0 goes back from the loss of stage 1, from which its stage does not learn");
}

TEST(Prove, RefusesToRelayWhatAStageLearnsFrom) {
  Schedule schedule = with_head();
  schedule.learns_from[1] = {1, 2};
  expect_refused(schedule,
                 "1b0←1 passes the gradient of the loss of stage 1 on without a weight-only "
                 "backward, but its stage learns from that loss");
}

/// One stage, F b W U for each of two mini-batches.
Schedule with_halves() {
  Schedule schedule = pipeline(1);
  auto& actions = schedule.workers[0];
  for (auto at = actions.begin(); at != actions.end(); ++at) {
    at->weights = Weights::latest();
    if (at->kind != ActionKind::Backward) continue;
    at->kind = ActionKind::BackwardInput;
    at = actions.insert(at + 1, *at);
    at->kind = ActionKind::BackwardWeight;
  }
  return schedule;
}

TEST(Prove, AcceptsABackwardInTwoHalvesOfTheFirstStageToo) {
  EXPECT_EQ(refusal(with_halves()), "accepted");
}

TEST(Prove, RefusesHalfABackward) {
  Schedule schedule = with_halves();
  schedule.workers[0].erase(schedule.workers[0].begin() + 2);
  expect_refused(schedule,
                 "0b0←0 passes the gradient of the loss of stage 0 on without a weight-only "
                 "backward, but its stage learns from that loss");
  schedule = with_halves();
  schedule.workers[0].erase(schedule.workers[0].begin() + 1);
  expect_refused(schedule, "it has no backward of stage 0, replica 0, mini-batch 0");
  schedule = with_halves();
  schedule.workers[0][1].kind = ActionKind::Backward;
  expect_refused(schedule, "0W0 has no input-only backward of the same pass");
}

TEST(Prove, RefusesTheSecondHalfBeforeTheFirst) {
  Schedule schedule = with_halves();
  std::swap(schedule.workers[0][1], schedule.workers[0][2]);
  expect_refused(schedule, "deadlock: 0W0 can never start, because it waits for 0b0");
}

TEST(Prove, RefusesHalvesOfDifferentWeights) {
  Schedule schedule = with_halves();
  schedule.workers[0][6].weights = Weights::of_version(0);
  expect_refused(schedule, "0W1 computes with other weights than the input-only backward");
}

TEST(Prove, RefusesToLearnInHalvesFromALossThatAStageDoesNotLearnFrom) {
  Schedule schedule = with_head();
  schedule.workers[1].insert(schedule.workers[1].begin() + 3,
                             Action{.kind = ActionKind::BackwardWeight, .stage = 1, .loss = 1});
  expect_refused(schedule,
                 "1W0 goes back from the loss of stage 1, from which its stage does not learn");
}

TEST(Prove, RefusesARelayToNobody) {
  Schedule schedule = with_head();
  schedule.workers[0].erase(schedule.workers[0].begin() + 1);
  schedule.learns_from[0] = {};
  schedule.workers[0].pop_back();
  expect_refused(schedule,
                 "1b0←1 passes the gradient of the loss of stage 1 on, but no earlier stage "
                 "takes it");
}

TEST(Prove, RefusesAHeadOfAnotherLossOrWhereThereIsNone) {
  Schedule schedule = with_head();
  schedule.workers[1][1].loss = 2;
  expect_refused(schedule, "1H0 names the loss of stage 2; expected that of its own stage");
  schedule = with_head();
  schedule.auxiliary = {0};
  expect_refused(schedule, "1H0 belongs to a stage without an auxiliary head");
}

TEST(Prove, RefusesAnUpdateWithoutGradientAndAGradientWithoutUpdate) {
  Schedule schedule = pipeline(1);
  std::swap(schedule.workers[0][1], schedule.workers[0][2]);
  expect_refused(schedule, "0U0 has no gradient to apply");
  schedule = pipeline(1);
  schedule.workers[0].pop_back();
  expect_refused(schedule, "0B1 makes a gradient that no update applies");
}

TEST(Prove, RefusesAnUpdateOfAnotherMiniBatch) {  // its learning rate would be another's
  Schedule schedule = pipeline(1);
  schedule.workers[0][2].minibatch = 1;
  expect_refused(schedule, "0U1 follows a gradient of another mini-batch than its own");
}

TEST(Prove, RefusesAGradientOfReplicasThatIsNotReducedOnce) {
  const Schedule right = pipeline(1, 1, 2, 2);  // F0 B0 R0 U0 F1 B1 R1 U1 on both
  Schedule schedule = right;
  for (auto& worker : schedule.workers) worker.erase(worker.begin() + 2);
  expect_refused(schedule, "0U0 applies a gradient that its replicas have not reduced");
  schedule = right;
  for (auto& worker : schedule.workers) worker.insert(worker.begin() + 2, worker[2]);
  expect_refused(schedule, "0R0 reduces a gradient that has been reduced already");
  schedule = right;
  for (auto& worker : schedule.workers) worker.erase(worker.begin() + 3);
  expect_refused(schedule,
                 "0B1 adds to a gradient that has been reduced over the replicas already");
}

TEST(Prove, RefusesReplicasThatReduceInDifferentOrders) {
  Schedule schedule = pipeline(2, 1, 1, 2);
  schedule.shape.placement = {0, 0};  // both stages of a replica on one worker
  auto merged = [](const std::vector<Action>& a, const std::vector<Action>& b, bool first) {
    std::vector<Action> all{a[0], b[0], b[1], a[1]};
    const auto& one = first ? a : b;
    const auto& other = first ? b : a;
    all.insert(all.end(), one.begin() + 2, one.end());
    all.insert(all.end(), other.begin() + 2, other.end());
    return all;
  };
  const auto by_stage = schedule.workers;
  schedule.workers = {merged(by_stage[0], by_stage[1], true),
                      merged(by_stage[2], by_stage[3], true)};
  EXPECT_EQ(refusal(schedule), "accepted");
  schedule.workers[1] = merged(by_stage[2], by_stage[3], false);
  expect_refused(schedule,
                 "its replicas never reach the same reduction, and worker 1 is stuck at ");
}

TEST(Prove, MarksThePassWhoseBackwardIsMissing) {
  Schedule schedule = pipeline(2);
  std::erase_if(schedule.workers[0], [](const Action& action) {
    return action.kind == ActionKind::Backward && action.minibatch == 1;
  });
  expect_refused(schedule,
                 "it has no backward of stage 0, replica 0, mini-batch 1, micro-batch 0, for the "
                 "loss of stage 1\n");
  expect_refused(schedule, "▶F1◀");
}

TEST(Prove, DrawsTheGridOfAScheduleThatLacksAWholePass) {
  Schedule schedule = pipeline(2);
  std::erase_if(schedule.workers[1], [](const Action& action) { return action.minibatch == 1; });
  expect_refused(schedule,
                 "it has no forward of stage 1, replica 0, mini-batch 1, micro-batch 0\n");
  expect_refused(schedule, "\nworker 1 ");
}

TEST(Prove, RefusesAnythingButForwardsInAnEvaluation) {
  Schedule schedule = pipeline(2);
  schedule.shape.training = false;
  expect_refused(schedule, "has no place in an evaluation, which consists of forwards only");
  EXPECT_EQ(refusal(evaluation_schedule({.stages = 2, .minibatches = 2})), "accepted");
}

}  // namespace
}  // namespace pipewright
