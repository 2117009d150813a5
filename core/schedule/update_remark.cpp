// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/update_remark.h"

#include <algorithm>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

/// [replica · N + stage]: the updates that each stage makes, in all rounds of the loop.
std::vector<int> updates_of(const Schedule& schedule, const std::optional<Loop>& loop) {
  const PipelineShape& shape = schedule.shape;
  std::vector<int> updates(as_size(shape.replicas * shape.stages), 0);
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker)
      if (action.kind == ActionKind::Update)
        ++updates[as_size(action.replica * shape.stages + action.stage)];
  if (loop)
    for (std::size_t i = 0; i < updates.size(); ++i)
      updates[i] += (loop->rounds - 1) * loop->step.updates[i];
  return updates;
}

}  // namespace

std::string update_remark(const Schedule& schedule, const std::optional<Loop>& loop) {
  if (!schedule.shape.training) return {};
  const int rounds = loop ? (loop->rounds - 1) * loop->step.minibatches : 0;
  const int minibatches = schedule.shape.minibatches + rounds;
  const std::vector<int> updates = updates_of(schedule, loop);
  const auto fewest = std::ranges::min_element(updates);
  if (fewest == updates.end() || *fewest >= minibatches) return {};
  const auto others =
      std::ranges::count_if(updates, [&](int each) { return each < minibatches; }) - 1;
  const auto stage = (fewest - updates.begin()) % schedule.shape.stages;
  std::string text = concat("stage ", stage, " updates its weights ", counted(*fewest, "time"),
                            " in ", counted(minibatches, "mini-batch"));
  if (others > 0) text += concat(", and ", counted(others, "other stage"), " not in all of them");
  return text + "; the gradients of a mini-batch without an update are added to those of the next";
}

}  // namespace pipewright
