// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/schedule/action_list.h"

namespace pipewright {
namespace {

[[noreturn]] void refuse(const Schedule& schedule, const Action& action, const std::string& why) {
  throw Error(ErrorKind::Experiment,
              concat("PyTorch's schedule files hold one mini-batch of a synchronous scheme, whose "
                     "passes all compute with the newest weights; this schedule cannot be written "
                     "as one, because ",
                     action_name(action, schedule.shape.microbatches), " ", why));
}

/// The cell of a pass: "2F0".
std::string cell_of(const ProvedSchedule& proved, const Action& action) {
  const Schedule& schedule = proved.schedule;
  const char* operation = "";
  if (schedule.shape.slices > 1) refuse(schedule, action, "is of a slice of a micro-batch");
  switch (action.kind) {
    case ActionKind::Forward: operation = "F"; break;
    case ActionKind::Backward: operation = "B"; break;
    case ActionKind::BackwardInput: operation = "I"; break;
    case ActionKind::BackwardWeight: operation = "W"; break;
    default: refuse(schedule, action, "is of a kind that these files do not have");
  }
  if (action.loss != schedule.shape.stages - 1 && action.kind != ActionKind::Forward)
    refuse(schedule, action, "belongs to an auxiliary loss");
  if (action.kind == ActionKind::BackwardInput && proved.index.weight_backward(action) == kNowhere)
    refuse(schedule, action, "passes a gradient on without a weight-only backward");
  if (action.weights != Weights::latest())
    refuse(schedule, action, "computes with other weights than the newest");
  return concat(action.stage, operation, action.microbatch);
}

}  // namespace

std::string render_csv(const ProvedSchedule& proved) {
  const Schedule& schedule = proved.schedule;
  const SlotTimes times = slot_times(schedule);
  const bool paired = any_action(schedule, [](const Action& action) { return action.with_next; });
  std::string out = concat(
      "worker,index,kind,stage,replica,minibatch,microbatch,loss,version,ahead,start,slots,weights,"
      "scale",
      paired ? ",with_next\n" : "\n");
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    const WeightKey& key = proved.versions.at(place).key;
    out += concat(place.first, ",", place.second, ",", kind_name(action.kind), ",", action.stage,
                  ",", action.replica, ",", action.minibatch, ",");
    if (of_microbatch(action.kind)) out += std::to_string(action.microbatch);
    out += facts_of(action.kind).of_loss ? concat(",", action.loss, ",") : ",,";
    out += is_pass(action.kind) ? concat(key.version, ",", key.ahead, ",") : ",,";
    out += concat(times.start[as_size(place.first)][as_size(place.second)], ",",
                  slots_of(action.kind), ",");
    if (is_pass(action.kind)) out += weights_text(action.weights, schedule.rules);
    out += concat(",", number_text(action.scale));
    if (paired) out += action.with_next ? ",1" : ",";
    out += '\n';
  });
  return out;
}

std::string render_pytorch_csv(const ProvedSchedule& proved) {
  const Schedule& schedule = proved.schedule;
  std::string out;
  for (int worker = 0; worker < schedule.shape.workers_per_replica(); ++worker) {
    std::vector<std::string> first, now;
    int minibatch = 0;
    auto compare = [&](const Action& next) {
      if (minibatch == 0) first = now;
      if (first != now)
        refuse(schedule, next, "follows a mini-batch whose passes are not those of the first");
      now.clear();
    };
    const auto& actions = schedule.workers[static_cast<std::size_t>(worker)];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (!is_pass(action.kind)) continue;
      if (action.replica != 0) refuse(schedule, action, "belongs to a second replica there");
      if (action.minibatch < minibatch)
        refuse(schedule, action, "runs after a pass of a later mini-batch");
      if (action.minibatch > minibatch) compare(action);
      minibatch = action.minibatch;
      std::string cell = cell_of(proved, action);
      const bool second =
          i > 0 && is_fused_pair(actions, i - 1) && action.kind == ActionKind::Backward;
      if (second)
        now.back() = concat("(", now.back(), ";", cell, ")OVERLAP_F_B");
      else
        now.push_back(std::move(cell));
    }
    if (minibatch == 0) first = now;
    out += join(first, ",") + "\n";
  }
  return out;
}

}  // namespace pipewright
