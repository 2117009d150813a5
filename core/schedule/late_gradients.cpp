// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/late_gradients.h"

#include <algorithm>
#include <utility>

#include "core/schedule/prove.h"

namespace pipewright {
namespace {

/// An update of a stage: the pass before that completes its gradient, and the update itself, or the
/// sum over replicas that precedes it.
struct Applied {
  ActionPlace last_pass, begin;
  int minibatch = 0;
};

/// [replica] → the updates of a stage, in their order.
std::map<int, std::vector<Applied>> applied_by(const Schedule& schedule, int stage) {
  std::map<int, std::vector<Applied>> all;
  std::map<int, ActionPlace> last_pass;
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    if (action.stage != stage) return;
    if (makes_weight_gradient(action.kind)) last_pass[action.replica] = place;
    if (action.kind != ActionKind::Reduce && action.kind != ActionKind::Update) return;
    const auto node = last_pass.extract(action.replica);  // none: the update follows its sum
    if (node) all[action.replica].push_back({node.mapped(), place, action.minibatch});
  });
  return all;
}

/// [worker][action] → how many actions of `worker` have ended before it, whatever the times.
std::vector<std::vector<int>> ended_before(const ProvedSchedule& proved, int worker) {
  std::vector<std::vector<int>> ended;
  for (const auto& actions : proved.schedule.workers) ended.emplace_back(actions.size(), 0);
  for (const auto& [w, i] : proved.order) {
    int& most = ended[as_size(w)][as_size(i)];
    if (i > 0) most = ended[as_size(w)][as_size(i - 1)];
    if (w == worker) most = i;
    const ActionPlace input = proved.index.input_of(action_at(proved.schedule, {w, i}));
    if (input != kNowhere)
      most = std::max(most, input.first == worker
                                ? input.second + 1
                                : ended[as_size(input.first)][as_size(input.second)]);
  }
  return ended;
}

}  // namespace

LateGradients::LateGradients(const ProvedSchedule& proved) {
  const PipelineShape& shape = proved.schedule.shape;
  if (!shape.training) return;
  for (int pair = 0; pair < static_cast<int>(shape.tied.size()); ++pair)
    for (const bool back : {false, true}) join(proved, pair, back);
  for (auto& [update, all] : taken_) std::ranges::sort(all);
}

void LateGradients::join(const ProvedSchedule& proved, int pair, bool back) {
  const TiedCopies& tied = proved.schedule.shape.tied[as_size(pair)];
  const int from = back ? tied.second : tied.first, to = back ? tied.first : tied.second;
  auto given = applied_by(proved.schedule, from);
  for (const auto& [replica, updates] : applied_by(proved.schedule, to)) {
    const auto ended = ended_before(proved, proved.schedule.shape.worker_of(from, replica));
    auto update = updates.begin();
    for (const Applied& each : given[replica]) {
      const auto comes_behind = [&](const Applied& other) {
        const auto& [worker, index] = other.begin;
        return other.minibatch >= each.minibatch &&
               ended[as_size(worker)][as_size(index)] > each.last_pass.second;
      };
      update = std::find_if(update, updates.end(), comes_behind);
      if (update == updates.end()) break;
      for (auto* all : {&given_[each.last_pass], &taken_[update->begin]})
        all->push_back({each.last_pass, pair, back});
      int& lag = lag_[{pair, back}];
      lag = std::max(lag, update->minibatch - each.minibatch);
    }
  }
}

const std::vector<LateGradient>& LateGradients::at(const Gradients& all, ActionPlace place) {
  static const std::vector<LateGradient> kNone;
  const auto found = all.find(place);
  return found == all.end() ? kNone : found->second;
}

int LateGradients::lag(int pair, bool back) const {
  const auto found = lag_.find({pair, back});
  return found == lag_.end() ? 0 : found->second;
}

}  // namespace pipewright
