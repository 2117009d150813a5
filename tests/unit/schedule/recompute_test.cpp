// SPDX-License-Identifier: Apache-2.0
// Where recomputations stand, what they read, and what prove() says of those that are wrong.
#include "core/schedule/rewrites/recompute.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/slots.h"
#include "core/schedule/versions.h"
#include "tests/unit/schedule/refusal.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

constexpr Recomputation kEach[] = {Recomputation::Never, Recomputation::Always,
                                   Recomputation::ExceptLast};

Schedule recomputing_gpipe(int stages, int microbatches, Recomputation which, int minibatches = 1) {
  return with_recomputation(
      pipeline_schedule(
          {.stages = stages, .microbatches = microbatches, .minibatches = minibatches},
          {.fill_drain = true}),
      which);
}

/// "0F0.0 0F0.1 0r0.1 …"
std::string actions_of(const Schedule& schedule, std::size_t worker) {
  std::vector<std::string> names;
  for (const Action& action : schedule.workers[worker])
    names.push_back(action_name(action, schedule.shape.microbatches));
  return join(names, " ");
}

TEST(Recompute, StandsBeforeTheBackwardOfItsMicroBatch) {
  EXPECT_EQ(actions_of(recomputing_gpipe(2, 3, Recomputation::Always), 0),
            "0F0.0 0F0.1 0F0.2 0r0.2 0B0.2 0r0.1 0B0.1 0r0.0 0B0.0 0U0");
  EXPECT_EQ(actions_of(recomputing_gpipe(2, 3, Recomputation::Never), 0),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0U0");
}

TEST(Recompute, ExceptLastKeepsTheLastMicroBatchOfEachMiniBatch) {
  EXPECT_EQ(actions_of(recomputing_gpipe(2, 2, Recomputation::ExceptLast, 2), 1),
            "1F0.0 1F0.1 1B0.1 1r0.0 1B0.0 1U0 1F1.0 1F1.1 1B1.1 1r1.0 1B1.0 1U1");
  const Schedule stale = with_recomputation(
      schedule_of("pipedream_2bw", "{}", {.stages = 2, .microbatches = 2, .minibatches = 2}),
      Recomputation::ExceptLast);
  EXPECT_EQ(actions_of(stale, 1),
            "1F0.0 1r0.0 1B0.0 1F0.1 1B0.1 1U0 1F1.0 1r1.0 1B1.0 1F1.1 1B1.1 1U1");
}

TEST(Recompute, ExceptLastLeavesMiniBatchesOfOneMicroBatchAloneAndSaysSo) {
  const Schedule schedule = schedule_of("pipedream", "{}", {.stages = 3, .minibatches = 4});
  EXPECT_EQ(with_recomputation(schedule, Recomputation::ExceptLast), schedule);
  EXPECT_NE(recomputing(Recomputation::ExceptLast).remark(schedule).find("nothing is recomputed"),
            std::string::npos);
  EXPECT_EQ(recomputing(Recomputation::Always).remark(schedule), "");
  const Schedule of_two =
      schedule_of("pipedream_2bw", "{}", {.stages = 2, .microbatches = 2, .minibatches = 2});
  EXPECT_EQ(recomputing(Recomputation::ExceptLast).remark(of_two), "");
}

TEST(Recompute, ComesOnceBeforeAllBackwardsOfSeveralLosses) {
  const Schedule schedule = with_recomputation(
      schedule_of("interlocking", "{width: 2}", {.stages = 4}), Recomputation::Always);
  EXPECT_EQ(actions_of(schedule, 1), "1F0 1H0 1r0 1b0←1 1B0 1U0");
}

TEST(Recompute, LeavesFusedPairsBesideEachOther) {
  const Schedule plain = schedule_of("dualpipe_v", "{}", {.stages = 4, .microbatches = 6});
  const auto pairs_of = [](const Schedule& schedule) {
    std::vector<std::string> pairs;
    for (const auto& actions : schedule.workers)
      for (std::size_t i = 0; i < actions.size(); ++i)
        if (is_fused_pair(actions, i))
          pairs.push_back(action_name(actions[i], 6) + action_name(actions[i + 1], 6));
    return pairs;
  };
  for (const Recomputation which : kEach) {
    const Schedule again = with_recomputation(plain, which);
    EXPECT_NO_THROW(prove(again));
    EXPECT_EQ(pairs_of(again), pairs_of(plain));
  }
  EXPECT_GT(pairs_of(plain).size(), 8U);
}

TEST(Recompute, IsNoPartOfAnEvaluation) {
  const Schedule schedule = evaluation_schedule({.stages = 2, .microbatches = 2});
  EXPECT_EQ(with_recomputation(schedule, Recomputation::Always), schedule);
}

TEST(Recompute, DoesNotWaitForTheGradient) {
  const Schedule schedule = recomputing_gpipe(3, 3, Recomputation::Always);
  const SlotTimes times = slot_times(schedule);
  const auto start = [&](const std::string& name) {
    for (std::size_t w = 0; w < schedule.workers.size(); ++w)
      for (std::size_t i = 0; i < schedule.workers[w].size(); ++i)
        if (action_name(schedule.workers[w][i], 3) == name) return times.start[w][i];
    ADD_FAILURE() << "there is no " << name;
    return 0;
  };
  // Stage 2 has its last forward in slot 4, stage 1 in slot 3: both recompute right after.
  EXPECT_EQ(start("2r0.2"), 5);
  EXPECT_EQ(start("1r0.2"), 4);
  EXPECT_EQ(start("1B0.2"), 8) << "when the gradient has come";
}

/// torchgpipe's third rule: the memory of one micro-batch's activations is all a stage needs.
TEST(Recompute, HasOneMicroBatchAliveAtAStageOfGPipe) {
  for (const Recomputation which : {Recomputation::Always, Recomputation::ExceptLast}) {
    const Schedule schedule = recomputing_gpipe(4, 5, which, 2);
    for (const auto& worker : schedule.workers) {
      std::set<int> recomputed, alive;
      for (const Action& a : worker)
        if (a.kind == ActionKind::Recompute) recomputed.insert(a.minibatch * 5 + a.microbatch);
      std::size_t most = 0;
      for (const Action& a : worker) {
        const int id = a.minibatch * 5 + a.microbatch;
        if (a.kind == ActionKind::Recompute) alive.insert(id);
        if (a.kind == ActionKind::Forward && !recomputed.contains(id)) alive.insert(id);
        most = std::max(most, alive.size());
        if (a.kind == ActionKind::Backward) alive.erase(id);
      }
      EXPECT_EQ(most, 1U);
    }
  }
}

TEST(Recompute, ReadsInEverySchemeWhatItsForwardRead) {
  for (const SchemeCase& scheme : every_scheme())
    for (const Recomputation which : kEach) {
      if (scheme.name == "features_replay") continue;  // its own read what their backwards read
      PipelineShape shape{.stages = 4, .microbatches = 4, .minibatches = 4};
      if (scheme.name == "data_parallel") shape.stages = 1;
      const Schedule schedule =
          with_recomputation(schedule_of(scheme.name, scheme.options, shape), which);
      EXPECT_NO_THROW(prove(schedule)) << scheme.name << scheme.options;
      const Versions versions = prove(schedule).versions;
      const PassIndex index(schedule);
      int count = 0;
      for (std::size_t w = 0; w < schedule.workers.size(); ++w)
        for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
          const Action& action = schedule.workers[w][i];
          if (action.kind != ActionKind::Recompute) continue;
          const auto [worker, place] = index.forward(action);
          EXPECT_EQ(versions.workers[w][i].key,
                    versions.workers[as_size(worker)][as_size(place)].key);
          ++count;
        }
      const int of_all = shape.stages * shape.minibatches;
      EXPECT_EQ(count, which == Recomputation::Never    ? 0
                       : which == Recomputation::Always ? 4 * of_all
                                                        : 3 * of_all);
    }
}

/// Without stashing the newest weights are enough; a recomputation needs those of its forward, as
/// many versions back as there are mini-batches in flight.
TEST(Recompute, HoldsTheWeightsOfForwardsThatAreToBeRunAgain) {
  const Schedule schedule =
      schedule_of("pipedream", "{weight_stashing: false}", {.stages = 4, .minibatches = 12});
  for (int stage = 0; stage < 4; ++stage) {
    const auto copies = [&](Recomputation which) {
      return prove(with_recomputation(schedule, which)).versions.stages[as_size(stage)][0].copies;
    };
    EXPECT_EQ(copies(Recomputation::Never), 1);
    EXPECT_EQ(copies(Recomputation::Always), 4 - stage);
  }
}

TEST(Recompute, ShowsInGridTableAndFile) {
  const Schedule schedule = recomputing_gpipe(2, 2, Recomputation::ExceptLast);
  const std::string grid = render_text(schedule);
  EXPECT_NE(grid.find("F0.0 F0.1 B0.1----- r0.0 B0.0-----|"), std::string::npos) << grid;
  EXPECT_NE(grid.find("r recompute"), std::string::npos) << grid;
  EXPECT_NE(render_versions(prove(schedule), 1).find(" r  0"), std::string::npos)
      << render_versions(prove(schedule), 1);
  EXPECT_NE(render_csv(prove(schedule)).find("1,3,recompute,1,0,0,0,,0,0,5,1,forward,1\n"),
            std::string::npos)
      << render_csv(prove(schedule));
  EXPECT_NE(render_svg(prove(schedule), "gpipe", 1).find("recompute"), std::string::npos);
  EXPECT_NE(render_trace(prove(schedule)).find("\"cat\":\"recompute\""), std::string::npos);
}

TEST(Recompute, IsRefusedWhereItIsOfNoUseOrOfOtherWeights) {
  // 0F0.0 0F0.1 0r0.1 0B0.1 0r0.0 0B0.0 0U0
  const Schedule right = recomputing_gpipe(1, 2, Recomputation::Always);
  EXPECT_EQ(refusal_after(right, [](auto&) {}), "accepted");
  EXPECT_EQ(refusal_after(right, [](auto& a) { a.erase(a.begin() + 2); }), "accepted")
      << "one micro-batch keeps its activations";
  EXPECT_NE(refusal_after(right, [](auto& a) { a.insert(a.begin() + 2, a[2]); })
                .find("0r0.1 happens twice"),
            std::string::npos);
  EXPECT_NE(refusal_after(right, [](auto& a) { std::swap(a[2], a[3]); })
                .find("0r0.1 comes after a backward that needs its activations"),
            std::string::npos);
  EXPECT_NE(refusal_after(right, [](auto& a) { std::swap(a[1], a[2]); }).find("0r0.1"),
            std::string::npos);
  EXPECT_EQ(refusal_after(right, [](auto& a) { a[2].weights = Weights::latest(); }), "accepted")
      << "these are the weights of its forward";
  EXPECT_NE(refusal_after(right, [](auto& a) { a[2].weights = Weights::latest(1); })
                .find("0r0.1 computes with other weights than its forward and than the backwards "
                      "that need it"),
            std::string::npos);
  Schedule evaluation = evaluation_schedule({});
  EXPECT_NE(refusal_after(evaluation,
                          [](auto& a) {
                            a.push_back(
                                {.kind = ActionKind::Recompute, .weights = Weights::of_forward()});
                          })
                .find("forwards only"),
            std::string::npos);
}

/// One stage, two micro-batches in flight, an update after each: 0F0 0F1 0r0 0B0 0U0 0r1 0B1 0U1.
Schedule replaying(const Weights& replay, const Weights& backward) {
  Schedule schedule = empty_schedule({.minibatches = 2});
  const auto add = [&](ActionKind kind, int minibatch, const Weights& weights) {
    schedule.workers[0].push_back({.kind = kind, .minibatch = minibatch, .weights = weights});
  };
  for (const int minibatch : {0, 1}) add(ActionKind::Forward, minibatch, {});
  for (const int minibatch : {0, 1}) {
    add(ActionKind::Recompute, minibatch, replay);
    add(ActionKind::Backward, minibatch, backward);
    add(ActionKind::Update, minibatch, {});
  }
  return schedule;
}

TEST(Recompute, HasTheWeightsOfItsForwardOrOfItsBackwards) {
  const Weights latest, forward = Weights::of_forward();
  const auto refusal = [](const Weights& replay, const Weights& backward) {
    return refusal_after(replaying(replay, backward), [](auto&) {});
  };
  for (const Weights& replay : {latest, forward, Weights::of_version(0)})
    for (const Weights& backward : {latest, forward, Weights::of_version(0)}) {
      const bool of_forward = replay != latest;  // the forwards read version 0
      const bool right = of_forward || backward == latest;
      EXPECT_EQ(refusal(replay, backward) == "accepted", right);
    }
  EXPECT_NE(refusal(latest, forward).find("0r1 computes with other weights"), std::string::npos);
  EXPECT_EQ(refusal(Weights::latest(2), Weights::latest(2)), "accepted") << "the same prediction";
}

TEST(Recompute, OfASchemeStaysAsItIs) {
  const Schedule own = replaying(Weights::latest(), Weights::latest());
  for (const Recomputation which : {Recomputation::Always, Recomputation::ExceptLast})
    EXPECT_EQ(with_recomputation(own, which), own);
}

}  // namespace
}  // namespace pipewright
