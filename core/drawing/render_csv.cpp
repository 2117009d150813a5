// SPDX-License-Identifier: Apache-2.0

#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/schedule/action_list.h"

namespace pipewright {
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

}  // namespace pipewright
