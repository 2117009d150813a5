// SPDX-License-Identifier: Apache-2.0
// A stage that misses an update is named; no scheme of ours misses one.
#include "core/schedule/remarks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

/// Takes the update of one stage in one mini-batch out of a schedule.
void forget(Schedule& schedule, int stage, int minibatch) {
  for (auto& worker : schedule.workers)
    std::erase_if(worker, [&](const Action& action) {
      return action.kind == ActionKind::Update && action.stage == stage &&
             action.minibatch == minibatch;
    });
}

TEST(UpdateRemark, NamesTheStageThatUpdatesLeast) {
  Schedule schedule = schedule_of("gpipe", "{}", {.stages = 3, .minibatches = 5});
  EXPECT_EQ(update_remark(prove(schedule)), "");
  forget(schedule, 1, 2);
  EXPECT_EQ(update_remark(prove(schedule)),
            "stage 1 updates its weights 4 times in 5 mini-batches; the gradients of a mini-batch "
            "without an update are added to those of the next");
  for (const int minibatch : {0, 1, 3}) forget(schedule, 2, minibatch);
  EXPECT_EQ(update_remark(prove(schedule)),
            "stage 2 updates its weights 2 times in 5 mini-batches, and 1 other stage not in all "
            "of them; the gradients of a mini-batch without an update are added to those of the "
            "next");
}

TEST(UpdateRemark, CountsTheRoundsOfALoop) {
  ProvedSchedule proved = prove(schedule_of("gpipe", "{}", {.stages = 2, .minibatches = 4}));
  proved.loop = {.step = {.minibatches = 2, .updates = {2, 2}}, .rounds = 10};
  EXPECT_EQ(update_remark(proved), "");
  proved.loop->step.updates = {2, 1};
  EXPECT_EQ(update_remark(proved).substr(0, 59),
            "stage 1 updates its weights 13 times in 22 mini-batches; th");
}

TEST(UpdateRemark, IsOfNoSchemeOfOurs) {
  for (const SchemeCase& each : every_scheme()) {
    const PipelineShape shape{
        .stages = each.name == "data_parallel" ? 1 : 4, .microbatches = 4, .minibatches = 6};
    EXPECT_EQ(update_remark(prove(schedule_of(each.name, each.options, shape))), "")
        << each.name << ' ' << each.options;
  }
}

/// GPipe whose last stage, where there are micro-batches enough, reads a version of the future.
class BrokenWithMany final : public Scheme {
 public:
  Schedule schedule(const PipelineShape& shape) const override {
    Schedule made = schedule_of("gpipe", "{}", shape);
    if (shape.microbatches > 4)
      for (Action& action : made.workers.back()) action.weights = Weights::of_version(99);
    return made;
  }
};

TEST(IdleRemark, IsNotOfASchemeThatIsNotValidWithMoreMicroBatches) {
  EXPECT_EQ(idle_remark(BrokenWithMany(), {.stages = 4, .microbatches = 1}), "");
}

}  // namespace
}  // namespace pipewright
