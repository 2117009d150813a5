// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/rewrites/recompute.h"

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace pipewright {
namespace {

Action recomputation_before(const Action& backward, int last_stage) {
  return {.kind = ActionKind::Recompute,
          .stage = backward.stage,
          .replica = backward.replica,
          .minibatch = backward.minibatch,
          .microbatch = backward.microbatch,
          .loss = last_stage,
          .weights = Weights::of_forward()};
}

}  // namespace

Schedule with_recomputation(Schedule schedule, Recomputation which) {
  if (which == Recomputation::Never) return schedule;
  const int last_microbatch = schedule.shape.microbatches - 1;
  for (auto& worker : schedule.workers) {
    std::set<std::array<int, 4>> begun;  // stage, replica, mini-batch, micro-batch of a backward
    std::vector<Action> actions;
    for (const Action& action : worker) {
      if (action.kind == ActionKind::Recompute)  // the scheme's own
        begun.insert({action.stage, action.replica, action.minibatch, action.microbatch});
      const bool paired = !actions.empty() && actions.back().with_next;  // it stays beside that
      const bool kept = which == Recomputation::ExceptLast && action.microbatch == last_microbatch;
      if (is_backward(action.kind) && !kept &&
          begun.insert({action.stage, action.replica, action.minibatch, action.microbatch}).second)
        actions.insert(actions.end() - (paired ? 1 : 0),
                       recomputation_before(action, schedule.shape.stages - 1));
      actions.push_back(action);
    }
    worker = std::move(actions);
  }
  return schedule;
}

ScheduleRewrite recomputing(Recomputation which) {
  const auto remark = [which](const Schedule& schedule) -> std::string {
    if (which != Recomputation::ExceptLast || schedule.shape.microbatches > 1) return {};
    return "pipeline.recompute: except_last recomputes all micro-batches of a mini-batch but the "
           "last, and with pipeline.microbatches: 1 there is no other, so nothing is recomputed.";
  };
  return {.option = "pipeline.recompute",
          .apply =
              [which](Schedule schedule) { return with_recomputation(std::move(schedule), which); },
          .remark = remark};
}

}  // namespace pipewright
