// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/pass_slots.h"

namespace pipewright {

PassSlots::PassSlots(const Schedule& schedule)
    : stages_(as_size(schedule.shape.stages)),
      replicas_(as_size(schedule.shape.replicas)),
      microbatches_(as_size(schedule.shape.microbatches)),
      passes_(as_size(schedule.shape.minibatches) * microbatches_ * replicas_),
      forwards_(passes_ * stages_),
      columns_of_(stages_ * stages_, -1) {
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker)
      if (is_part_of_backward(action.kind))
        columns_of_[as_size(action.stage) * stages_ + as_size(action.loss)] = 0;
  for (std::int32_t& column : columns_of_)  // ascending stages, so neighbours are side by side
    if (column == 0) column = columns_++;
}

}  // namespace pipewright
