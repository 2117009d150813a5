// SPDX-License-Identifier: Apache-2.0
/// Dense numbers for the passes of a schedule: one per forward, and one per backward of each loss
/// that has a backward, or a half of one, at the stage. Neighbouring stages of one micro-batch have
/// neighbouring numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/as_size.h"
#include "core/schedule/schedule.h"

namespace pipewright {

class PassSlots {
 public:
  inline static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  PassSlots() = default;
  /// The ranges of the schedule's numbers must have been checked.
  explicit PassSlots(const Schedule& schedule);

  std::size_t forwards() const { return forwards_; }
  std::size_t backwards() const { return passes_ * as_size(columns_); }

  /// The number of the forward at `stage` of like's replica and micro-batch.
  std::size_t forward(const Action& like, int stage) const {
    return pass(like) * stages_ + as_size(stage);
  }
  /// The number of the backward of like's loss at `stage`; kNone if the stage has none of that
  /// loss.
  std::size_t backward(const Action& like, int stage) const {
    const std::int32_t column = columns_of_[as_size(stage) * stages_ + as_size(like.loss)];
    return column < 0 ? kNone : pass(like) * as_size(columns_) + as_size(column);
  }

 private:
  std::size_t pass(const Action& like) const {
    return (as_size(like.minibatch) * microbatches_ + as_size(like.microbatch)) * replicas_ +
           as_size(like.replica);
  }

  std::size_t stages_ = 0, replicas_ = 0, microbatches_ = 0;
  std::size_t passes_ = 0;  ///< micro-batches of all mini-batches and replicas
  std::size_t forwards_ = 0;
  int columns_ = 0;
  std::vector<std::int32_t> columns_of_;  ///< [stage][loss] → column; −1: no such backward
};

}  // namespace pipewright
