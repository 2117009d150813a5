// SPDX-License-Identifier: Apache-2.0
// Where host copies stand, and what prove() says of those that are wrong.
#include "core/schedule/rewrites/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/schedule/action_list.h"
#include "core/schedule/builders.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/slots.h"
#include "tests/unit/schedule/refusal.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

Schedule offloading_gpipe(int stages, int microbatches, int ahead) {
  return with_offload(
      pipeline_schedule({.stages = stages, .microbatches = microbatches}, {.fill_drain = true}),
      ahead);
}

/// "0F0.0 0o0.0 0F0.1 …"
std::string actions_with_copies(const Schedule& schedule, std::size_t worker) {
  std::vector<std::string> names;
  for (const Action& action : schedule.workers[worker])
    names.push_back(action_name(action, schedule.shape.microbatches));
  return join(names, " ");
}

int copies_in(const Schedule& schedule) {
  std::ptrdiff_t copies = 0;
  for (const auto& actions : schedule.workers)
    copies +=
        std::ranges::count_if(actions, [](const Action& a) { return goes_on_beside(a.kind); });
  return static_cast<int>(copies);
}

TEST(Offload, StandsBehindTheForwardAndItsFetchSoManyPassesBeforeTheBackward) {
  EXPECT_EQ(actions_with_copies(offloading_gpipe(2, 3, 0), 0),
            "0F0.0 0o0.0 0F0.1 0o0.1 0F0.2 0B0.2 0f0.1 0B0.1 0f0.0 0B0.0 0U0");
  EXPECT_EQ(actions_with_copies(offloading_gpipe(2, 3, 1), 0),
            "0F0.0 0o0.0 0F0.1 0o0.1 0F0.2 0f0.1 0B0.2 0f0.0 0B0.1 0B0.0 0U0");
  EXPECT_EQ(actions_with_copies(offloading_gpipe(2, 3, 2), 0),
            "0F0.0 0o0.0 0F0.1 0F0.2 0f0.0 0B0.2 0B0.1 0B0.0 0U0");
  EXPECT_EQ(actions_with_copies(offloading_gpipe(2, 3, 4), 0),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0U0");
}

TEST(Offload, OfOneForwardOneBackwardMovesWhatWaitsForLongAndNothingAtTheLastStage) {
  const Schedule schedule =
      with_offload(schedule_of("one_f_one_b", "{}", {.stages = 3, .microbatches = 4}), 1);
  EXPECT_EQ(actions_with_copies(schedule, 0),
            "0F0.0 0o0.0 0F0.1 0o0.1 0f0.0 0F0.2 0o0.2 0B0.0 0f0.1 0F0.3 0o0.3 0f0.2 0B0.1 0f0.3 "
            "0B0.2 0B0.3 0U0");
  EXPECT_EQ(actions_with_copies(schedule, 2),
            "2F0.0 2B0.0 2F0.1 2B0.1 2F0.2 2B0.2 2F0.3 2B0.3 2U0");
}

/// A fetch comes before the updates that stand between, which take no part of it.
TEST(Offload, LetsUpdatesStandDirectlyBeforeThePassesThatPredictFromThem) {
  const Schedule plain = schedule_of("spectrain", "{}", {.stages = 4, .minibatches = 8});
  const Schedule schedule = with_offload(plain, 1);
  EXPECT_GT(copies_in(schedule), 8);
  for (const auto& actions : schedule.workers)
    for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
      EXPECT_FALSE(actions[i].kind == ActionKind::Update && goes_on_beside(actions[i + 1].kind));
    }
}

TEST(Offload, ComesBehindTheAuxiliaryHead) {
  Schedule plain = schedule_of("interlocking", "{width: 1}", {.stages = 2, .microbatches = 3});
  // All forwards and heads before the backwards.
  std::ranges::stable_sort(plain.workers[0], {}, [](const Action& action) {
    return action.kind == ActionKind::Update ? 2 : is_backward(action.kind) ? 1 : 0;
  });
  const Schedule schedule = with_offload(plain, 1);
  EXPECT_NO_THROW(prove(schedule));
  EXPECT_EQ(actions_with_copies(schedule, 0),
            "0F0.0 0H0.0 0o0.0 0F0.1 0H0.1 0o0.1 0F0.2 0f0.0 0H0.2 0o0.2 0f0.1 0B0.0 0f0.2 0B0.1 "
            "0B0.2 0U0");
}

TEST(Offload, LeavesFusedPairsBesideEachOther) {
  const Schedule plain = schedule_of("dualpipe_v", "{}", {.stages = 4, .microbatches = 6});
  const auto pairs_of = [](const Schedule& schedule) {
    std::vector<std::string> pairs;
    for (const auto& actions : schedule.workers)
      for (std::size_t i = 0; i < actions.size(); ++i)
        if (is_fused_pair(actions, i))
          pairs.push_back(action_name(actions[i], 6) + action_name(actions[i + 1], 6));
    return pairs;
  };
  for (const int ahead : {0, 1, 2, 3}) {
    const Schedule moved = with_offload(plain, ahead);
    EXPECT_NO_THROW(prove(moved));
    EXPECT_EQ(pairs_of(moved), pairs_of(plain));
    EXPECT_GT(copies_in(moved), 8);
  }
}

/// The promise of `ahead`: one pass earlier only where a fused pair would be parted.
TEST(Offload, IsRightInEverySchemeAndFetchesAsEarlyAsAsked) {
  for (const SchemeCase& scheme : every_scheme())
    for (const int ahead : {0, 1, 3}) {
      PipelineShape shape{.stages = 4, .microbatches = 4, .minibatches = 3};
      if (scheme.name == "data_parallel") shape.stages = 1;
      const Schedule plain = schedule_of(scheme.name, scheme.options, shape);
      const Schedule schedule = with_offload(plain, ahead);
      EXPECT_NO_THROW(prove(schedule)) << scheme.name << scheme.options;
      EXPECT_EQ(with_offload(schedule, ahead), schedule) << "what is offloaded stays so";
      for (const auto& actions : schedule.workers) {
        int passes = 0;
        const bool pairs = std::ranges::any_of(actions, &Action::with_next);
        std::map<std::array<int, 4>, int> fetched;
        for (const Action& a : actions) {
          const std::array<int, 4> key{a.stage, a.replica, a.minibatch, a.microbatch};
          if (a.kind == ActionKind::Fetch) fetched[key] = passes;
          if (!is_pass(a.kind)) continue;
          if (const auto found = fetched.find(key); found != fetched.end()) {
            EXPECT_GE(passes - found->second, ahead) << scheme.name << scheme.options;
            EXPECT_LE(passes - found->second, ahead + (pairs ? 1 : 0));
            fetched.erase(found);
          }
          ++passes;
        }
      }
    }
}

TEST(Offload, LeavesEvaluationsAndWhatIsRecomputedAlone) {
  const Schedule evaluation = evaluation_schedule({.stages = 2, .microbatches = 2});
  EXPECT_EQ(with_offload(evaluation, 0), evaluation);
  const Schedule again = with_recomputation(
      schedule_of("gpipe", "{}", {.stages = 2, .microbatches = 4}), Recomputation::Always);
  EXPECT_EQ(with_offload(again, 0), again);
}

TEST(Offload, SaysWhenItMovesNothing) {
  const Schedule alone = with_offload(schedule_of("gpipe", "{}", {.stages = 2}), 1);
  EXPECT_EQ(offloading(1).remark(alone),
            "pipeline.offload moves nothing: at no stage do more than 1 pass of its worker run "
            "between a forward and its backward.");
  EXPECT_EQ(offloading(1).remark(offloading_gpipe(2, 3, 1)), "");
}

TEST(Offload, TakesNoSlot) {
  const Schedule plain = schedule_of("one_f_one_b", "{}", {.stages = 4, .microbatches = 8});
  EXPECT_EQ(slot_times(with_offload(plain, 1)).makespan, slot_times(plain).makespan);
}

TEST(Offload, ShowsInGridFileAndTrace) {
  const Schedule schedule = offloading_gpipe(2, 3, 0);
  const std::string grid = render_text(schedule);
  EXPECT_NE(grid.find("F0.0^F0.1^F0.2"), std::string::npos) << grid;
  EXPECT_NE(grid.find("vB0.1"), std::string::npos) << grid;
  EXPECT_NE(grid.find("^ offload   v fetch"), std::string::npos) << grid;
  EXPECT_NE(render_csv(prove(schedule)).find("0,1,offload,0,0,0,0,,,,1,0,,1\n"), std::string::npos)
      << render_csv(prove(schedule));
  EXPECT_NE(render_svg(prove(schedule), "gpipe", 1).find("fetch"), std::string::npos);
  EXPECT_NE(render_trace(prove(schedule)).find("\"cat\":\"offload\""), std::string::npos);
}

TEST(Offload, ComesBackFromItsFile) {
  for (const char* scheme : {"gpipe", "pipedream", "zb_h1", "dualpipe_v"}) {
    const Schedule schedule = with_offload(
        schedule_of(scheme, "{}", {.stages = 4, .microbatches = 8, .minibatches = 2}), 1);
    EXPECT_GT(copies_in(schedule), 0);
    const std::string text = render_csv(prove(schedule));
    EXPECT_EQ(render_csv(prove(read_action_list(text, "f.csv").schedule)), text);
  }
}

void expect_copies_refused(const Schedule& right, const std::string& words,
                           const std::function<void(std::vector<Action>&)>& change) {
  const std::string text = refusal_after(right, change);
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(Offload, IsRefusedWhereItLosesWhatIsNeededOrMovesNothing) {
  // 0F0.0 0o0.0 0F0.1 0o0.1 0F0.2 0B0.2 0f0.1 0B0.1 0f0.0 0B0.0 0U0
  const Schedule right = offloading_gpipe(1, 3, 0);
  EXPECT_EQ(refusal_after(right, [](auto&) {}), "accepted");
  expect_copies_refused(right, "0o0.0 comes before its forward",
                        [](auto& a) { std::swap(a[0], a[1]); });
  expect_copies_refused(right, "0o0.0 happens twice",
                        [](auto& a) { a.insert(a.begin() + 2, a[1]); });
  expect_copies_refused(right, "0f0.1 has no offload of the same micro-batch before it",
                        [](auto& a) { a.erase(a.begin() + 3); });
  expect_copies_refused(
      right,
      "0B0.1 needs activations that an offload has moved to the host, and no fetch "
      "before it brings them back",
      [](auto& a) { a.erase(a.begin() + 6); });
  expect_copies_refused(right, "0B0.1 needs activations", [](auto& a) { std::swap(a[6], a[7]); });
  expect_copies_refused(right, "0o0.1 comes after a backward or a recomputation of its micro-batch",
                        [](auto& a) {
                          const std::vector<Action> copies{a[3], a[6]};
                          a.insert(a.begin() + 8, copies.begin(), copies.end());
                          a.erase(a.begin() + 6);
                          a.erase(a.begin() + 3);
                        });
  expect_copies_refused(right, "0r0.1 makes activations again that an offload has moved",
                        [](auto& a) {
                          Action again = a[7];
                          again.kind = ActionKind::Recompute;
                          a.insert(a.begin() + 7, again);
                        });
  Schedule evaluation = evaluation_schedule({});
  expect_copies_refused(evaluation, "forwards only",
                        [](auto& a) { a.push_back({.kind = ActionKind::Offload}); });
}

/// Stage 0 learns nothing.
TEST(Offload, IsRefusedWhereNoPassNeedsWhatComesBack) {
  Schedule schedule = schedule_of("one_f_one_b", "{}", {.stages = 2});
  schedule.learns_from[0].clear();
  schedule.workers[0].resize(1);
  ASSERT_EQ(actions_with_copies(schedule, 0), "0F0");
  EXPECT_EQ(refusal_after(schedule, [](auto&) {}), "accepted");
  const Action offload{.kind = ActionKind::Offload}, fetch{.kind = ActionKind::Fetch};
  expect_copies_refused(schedule, "0o0 moves activations to the host that no fetch brings back",
                        [&](auto& a) { a.push_back(offload); });
  expect_copies_refused(schedule, "0f0 brings back activations that no later pass needs",
                        [&](auto& a) {
                          a.push_back(offload);
                          a.push_back(fetch);
                        });
}

}  // namespace
}  // namespace pipewright
