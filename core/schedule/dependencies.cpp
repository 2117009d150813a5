// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/dependencies.h"

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

}  // namespace pipewright
