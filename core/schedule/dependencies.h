// SPDX-License-Identifier: Apache-2.0
/// The actions that must have ended before another may start. They are never written in a schedule,
/// but always derived.
#pragma once

#include <vector>

#include "core/schedule/action_place.h"
#include "core/schedule/pass_slots.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Whether an action waits for another one. The first stage's forward does not: it reads samples.
inline bool has_input(const Action& action) {
  const ActionInput input = facts_of(action.kind).input;
  return input != ActionInput::None && !(input == ActionInput::ForwardBefore && action.stage == 0);
}

/// Whether the action at `index` and the next one are a fused pair: a forward and a backward of
/// another pass.
bool is_fused_pair(const std::vector<Action>& actions, std::size_t index);

/// The place of each pass of a schedule. The schedule's ranges must have been checked. It need not
/// be complete: a missing pass is at kNowhere.
class PassIndex {
 public:
  PassIndex() = default;  ///< of a schedule without passes
  explicit PassIndex(const Schedule& schedule);

  /// The numbers of the passes, in which arrays of them are indexed.
  const PassSlots& slots() const { return slots_; }

  /// The Forward or Head of like's stage, replica and micro-batch; kNowhere if it is missing.
  ActionPlace forward(const Action& like) const {
    return at(forward_, slots_.forward(like, like.stage));
  }
  ActionPlace head(const Action& like) const { return at(head_, slots_.forward(like, like.stage)); }
  /// The Backward or BackwardInput of `like.loss` at `stage`, for like's replica and micro-batch.
  ActionPlace backward(const Action& like, int stage) const {
    return at(backward_, slots_.backward(like, stage));
  }
  /// The BackwardWeight that ends the split backward of `like.loss` at like's stage.
  ActionPlace weight_backward(const Action& like) const {
    return at(weight_, slots_.backward(like, like.stage));
  }

  /// The pass that makes the input of this action (see ActionInput); kNowhere if the action needs
  /// none or that pass is missing.
  ActionPlace input_of(const Action& action) const;
  /// The pass of stage−1 that needs the input gradient of this backward; kNowhere if there is none.
  ActionPlace consumer_of(const Action& backward) const;

 private:
  static ActionPlace at(const std::vector<ActionPlace>& places, std::size_t slot) {
    return slot < places.size() ? places[slot] : kNowhere;
  }

  PassSlots slots_;
  int stages_ = 0;
  std::vector<ActionPlace> forward_, backward_;
  std::vector<ActionPlace> head_, weight_;  ///< empty without auxiliary heads, or halves
};

}  // namespace pipewright
