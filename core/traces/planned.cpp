// SPDX-License-Identifier: Apache-2.0
#include "core/traces/planned.h"

#include <algorithm>

#include "core/base/as_size.h"

namespace pipewright {

namespace {

/// Costs of stages: the median of what actions of a kind computed, and of their codecs; of a
/// reduction the shortest, whose worker waited for nobody. Links take no time.
std::vector<StageCost> measured_costs(const Schedule& schedule, const Spans& spans) {
  const std::vector<StageMedians> medians = median_seconds(schedule, spans);
  Spans codecs = spans;  // spans that consist of their codecs
  for (auto& worker : codecs)
    for (Span& span : worker) span = {.end = span.decoding + span.encoding};
  const std::vector<StageMedians> coding = median_seconds(schedule, codecs);
  const auto median = [](const StageMedians& times, ActionKind kind) {
    return times[static_cast<std::size_t>(kind)];
  };
  std::vector<StageCost> costs;
  for (std::size_t stage = 0; stage < medians.size(); ++stage) {
    const StageMedians& times = medians[stage];
    StageCost& cost = costs.emplace_back();
    cost.forward = median(times, ActionKind::Forward);
    cost.head = median(times, ActionKind::Head);
    cost.backward = median(times, ActionKind::Backward);
    cost.backward_input = median(times, ActionKind::BackwardInput);
    cost.backward_weight = median(times, ActionKind::BackwardWeight);
    cost.update = median(times, ActionKind::Update);
    cost.coding_forward = median(coding[stage], ActionKind::Forward);
    cost.coding_backward = std::max(median(coding[stage], ActionKind::Backward),
                                    median(coding[stage], ActionKind::BackwardInput));
  }
  std::vector<bool> reduced(costs.size(), false);
  for (std::size_t w = 0; w < spans.size(); ++w)
    for (std::size_t i = 0; i < spans[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      if (action.kind != ActionKind::Reduce) continue;
      const double seconds = spans[w][i].end - spans[w][i].begin;
      double& shortest = costs[as_size(action.stage)].coding_reduce;
      shortest = reduced[as_size(action.stage)] ? std::min(shortest, seconds) : seconds;
      reduced[as_size(action.stage)] = true;
    }
  return costs;
}

}  // namespace

Simulation planned(const ProvedSchedule& proved, const Spans& spans) {
  return simulate(proved, measured_costs(proved.schedule, spans),
                  ideal_hardware(proved.schedule.shape.workers()), {.memory = false});
}

}  // namespace pipewright
