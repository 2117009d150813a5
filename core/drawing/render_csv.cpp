// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/schedule/action_list.h"
#include "core/schedule/versions.h"

namespace pipewright {
std::string render_csv(const Schedule& schedule) {
  const Versions versions = resolve_versions(schedule);
  const SlotTimes times = slot_times(schedule);
  const auto pairs = [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, &Action::with_next);
  };
  const bool paired = std::ranges::any_of(schedule.workers, pairs);
  std::string out = concat(
      "worker,index,kind,stage,replica,minibatch,microbatch,loss,version,ahead,start,slots,weights,"
      "scale",
      paired ? ",with_next\n" : "\n");
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Action& action = schedule.workers[worker][i];
      const WeightKey& key = versions.workers[worker][i].key;
      out += concat(worker, ",", i, ",", kind_name(action.kind), ",", action.stage, ",",
                    action.replica, ",", action.minibatch, ",");
      if (of_microbatch(action.kind)) out += std::to_string(action.microbatch);
      out += facts_of(action.kind).of_loss ? concat(",", action.loss, ",") : ",,";
      out += is_pass(action.kind) ? concat(key.version, ",", key.ahead, ",") : ",,";
      out += concat(times.start[worker][i], ",", slots_of(action.kind), ",");
      if (is_pass(action.kind)) out += weights_text(action.weights, schedule.rules);
      out += concat(",", number_text(action.scale));
      if (paired) out += action.with_next ? ",1" : ",";
      out += '\n';
    }
  }
  return out;
}

}  // namespace pipewright
