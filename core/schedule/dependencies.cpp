// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/dependencies.h"

#include "core/base/as_size.h"

namespace pipewright {

bool is_fused_pair(const std::vector<Action>& actions, std::size_t index) {
  if (!actions[index].with_next || index + 1 >= actions.size()) return false;
  const Action &forward = actions[index], &backward = actions[index + 1];
  const bool same_pass = forward.stage == backward.stage && forward.replica == backward.replica &&
                         forward.minibatch == backward.minibatch &&
                         forward.microbatch == backward.microbatch;
  return forward.kind == ActionKind::Forward && is_backward(backward.kind) && !same_pass;
}

PassIndex::PassIndex(const Schedule& schedule)
    : slots_(schedule),
      stages_(schedule.shape.stages),
      forward_(slots_.forwards(), kNowhere),
      backward_(slots_.backwards(), kNowhere) {
  if (!schedule.auxiliary.empty()) head_ = forward_;
  if (any_action(schedule, [](const Action& a) { return a.kind == ActionKind::BackwardWeight; }))
    weight_ = backward_;
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    if (action.kind == ActionKind::Forward) forward_[slots_.forward(action, action.stage)] = place;
    if (action.kind == ActionKind::Head && !head_.empty())
      head_[slots_.forward(action, action.stage)] = place;
    if (is_backward(action.kind)) backward_[slots_.backward(action, action.stage)] = place;
    if (action.kind == ActionKind::BackwardWeight)
      weight_[slots_.backward(action, action.stage)] = place;
  });
}

ActionPlace PassIndex::input_of(const Action& action) const {
  switch (facts_of(action.kind).input) {
    case ActionInput::None: return kNowhere;
    case ActionInput::ForwardBefore:
      return action.stage == 0 ? kNowhere : at(forward_, slots_.forward(action, action.stage - 1));
    case ActionInput::OwnForward: return forward(action);
    case ActionInput::GradientBehind:
      if (action.loss != action.stage) return backward(action, action.stage + 1);
      return action.stage == stages_ - 1 ? forward(action) : head(action);
    case ActionInput::FirstHalf: return backward(action, action.stage);
  }
  return kNowhere;
}

ActionPlace PassIndex::consumer_of(const Action& action) const {
  return action.stage == 0 ? kNowhere : backward(action, action.stage - 1);
}

namespace {

/// The pass of the same stage that an action has to follow because of its slice; kNowhere if there
/// is none.
ActionPlace needed_slice(const PipelineShape& shape, const PassIndex& index, Action action) {
  const int slice = shape.slice_of(action);
  if (action.kind == ActionKind::Forward && slice > 0) {
    --action.microbatch;
    return index.forward(action);
  }
  if (is_backward(action.kind) && slice + 1 < shape.slices) {
    ++action.microbatch;
    return index.backward(action, action.stage);
  }
  return kNowhere;
}

}  // namespace

ActionPlace slice_out_of_order(const Schedule& schedule, const PassIndex& index) {
  const PipelineShape& shape = schedule.shape;
  if (shape.slices == 1) return kNowhere;
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i)
      if (needed_slice(shape, index, schedule.workers[as_size(w)][as_size(i)]).second > i)
        return {w, i};  // a stage's passes are on one worker
  return kNowhere;
}

}  // namespace pipewright
