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
    : shape_(schedule.shape), site_of_loss_(as_size(shape_.stages), -1) {
  bool split = false;
  for_each_action(schedule, [&](ActionPlace, const Action& action) {
    const bool weight = action.kind == ActionKind::BackwardWeight;
    split = split || weight;
    if ((weight || is_backward(action.kind)) && site_of_loss_[as_size(action.loss)] < 0)
      site_of_loss_[as_size(action.loss)] = sites_++;
  });
  const std::size_t passes = as_size(shape_.minibatches) * as_size(shape_.microbatches) *
                             as_size(shape_.replicas) * as_size(shape_.stages);
  forward_.assign(passes, kNowhere);
  head_.assign(schedule.auxiliary.empty() ? 0 : passes, kNowhere);
  backward_.assign(passes * as_size(sites_), kNowhere);
  if (split) weight_ = backward_;
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    const std::size_t at = slot(action, action.stage);
    if (action.kind == ActionKind::Forward) forward_[at] = place;
    if (action.kind == ActionKind::Head && !head_.empty()) head_[at] = place;
    if (is_backward(action.kind)) backward_[slot_of_loss(action, action.stage)] = place;
    if (action.kind == ActionKind::BackwardWeight)
      weight_[slot_of_loss(action, action.stage)] = place;
  });
}

std::size_t PassIndex::slot(const Action& like, int stage) const {
  const std::size_t micro =
      as_size(like.minibatch) * as_size(shape_.microbatches) + as_size(like.microbatch);
  return (micro * as_size(shape_.replicas) + as_size(like.replica)) * as_size(shape_.stages) +
         as_size(stage);
}

ActionPlace PassIndex::like_at(const std::vector<ActionPlace>& places, const Action& like) const {
  return places.empty() ? kNowhere : places[slot(like, like.stage)];
}

std::size_t PassIndex::slot_of_loss(const Action& like, int stage) const {
  return slot(like, stage) * as_size(sites_) + as_size(site_of_loss_[as_size(like.loss)]);
}

ActionPlace PassIndex::backward(const Action& like, int stage) const {
  if (site_of_loss_[as_size(like.loss)] < 0) return kNowhere;
  return backward_[slot_of_loss(like, stage)];
}

ActionPlace PassIndex::weight_backward(const Action& like) const {
  if (weight_.empty() || site_of_loss_[as_size(like.loss)] < 0) return kNowhere;
  return weight_[slot_of_loss(like, like.stage)];
}

ActionPlace PassIndex::input_of(const Action& action) const {
  switch (facts_of(action.kind).input) {
    case ActionInput::None: return kNowhere;
    case ActionInput::ForwardBefore:
      return action.stage == 0 ? kNowhere : forward_[slot(action, action.stage - 1)];
    case ActionInput::OwnForward: return forward(action);
    case ActionInput::GradientBehind:
      if (action.loss != action.stage) return backward(action, action.stage + 1);
      return action.stage == shape_.stages - 1 ? forward(action) : head(action);
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
