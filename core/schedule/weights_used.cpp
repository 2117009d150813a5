// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/weights_used.h"

#include <algorithm>
#include <utility>

namespace pipewright {
namespace {

/// Appends the passes of one mini-batch on one worker, with the version that their gradient is
/// applied to.
void append_passes(const ProvedSchedule& proved, std::size_t worker, int minibatch,
                   std::vector<PassWeights>& passes) {
  const auto& actions = proved.schedule.workers[worker];
  const auto& weights = proved.versions.workers[worker];
  const std::size_t first = passes.size();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    if (is_pass(action.kind) && action.minibatch == minibatch)
      passes.push_back({action, weights[i].key, -1});
    if (action.kind != ActionKind::Update) continue;
    for (std::size_t p = first; p < passes.size(); ++p)
      if (passes[p].applied_to < 0 && passes[p].action.stage == action.stage &&
          passes[p].action.replica == action.replica && action.minibatch >= minibatch)
        passes[p].applied_to = weights[i].latest;
  }
}

}  // namespace

std::vector<PassWeights> weights_used(const ProvedSchedule& proved, int minibatch) {
  std::vector<PassWeights> passes;
  for (std::size_t worker = 0; worker < proved.schedule.workers.size(); ++worker)
    append_passes(proved, worker, minibatch, passes);
  std::stable_sort(passes.begin(), passes.end(), [](const PassWeights& a, const PassWeights& b) {
    return std::pair(a.action.stage, a.action.replica) <
           std::pair(b.action.stage, b.action.replica);
  });
  return passes;
}

}  // namespace pipewright
