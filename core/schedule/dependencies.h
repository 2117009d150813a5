/// What must have happened before an action may start: never written in a schedule, always derived.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// (worker, index of the action on it); {−1, −1} = none.
using ActionPlace = std::pair<int, int>;
inline constexpr ActionPlace kNowhere{-1, -1};

/// Whether an action waits for another one. The first stage's forward does not: it reads samples.
inline bool has_input(const Action& action) {
  const ActionInput input = facts_of(action.kind).input;
  return input != ActionInput::None && !(input == ActionInput::ForwardBefore && action.stage == 0);
}

/// Where each pass of a schedule stands. The schedule's ranges must have been checked; it need
/// not be complete: passes that are missing are nowhere.
class PassIndex {
 public:
  explicit PassIndex(const Schedule& schedule);

  ActionPlace forward(const Action& like) const { return like_at(forward_, like); }
  ActionPlace head(const Action& like) const { return like_at(head_, like); }
  /// The Backward or BackwardInput of `like.loss` at `stage`, for like's replica and micro-batch.
  ActionPlace backward(const Action& like, int stage) const;

  /// The BackwardWeight that ends the split backward of `like.loss` at like's stage.
  ActionPlace weight_backward(const Action& like) const;

  /// The pass that makes what this action needs, as its kind's ActionInput says; kNowhere: the
  /// action needs nothing, or that pass is missing.
  ActionPlace input_of(const Action& action) const;
  /// The pass of stage−1 that takes the input gradient of this backward; kNowhere: nobody.
  ActionPlace consumer_of(const Action& backward) const;

 private:
  std::size_t slot(const Action& like, int stage) const;
  /// Where `backward_` and `weight_` hold that loss's; it must be named by a backward.
  std::size_t slot_of_loss(const Action& like, int stage) const;
  ActionPlace like_at(const std::vector<ActionPlace>& places, const Action& like) const;

  PipelineShape shape_;
  int sites_ = 0;
  std::vector<int> site_of_loss_;  ///< loss → dense index, −1 when nobody names it
  std::vector<ActionPlace> forward_, head_, backward_;
  std::vector<ActionPlace> weight_;  ///< empty when no backward is split
};

}  // namespace pipewright
