// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/invalid_schedule.h"

namespace pipewright {

InvalidSchedule::InvalidSchedule(const std::string& message, ActionPlace culprit)
    : Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message),
            culprit == kNowhere ? std::string()
                                : concat("worker ", culprit.first, ", action ", culprit.second)),
      culprit_(culprit) {}

void refuse(const Schedule& schedule, ActionPlace culprit, const std::string& message) {
  const Action& action = action_at(schedule, culprit);
  throw InvalidSchedule(concat(action_name(action, schedule.shape.microbatches), " ", message, " (",
                               spelled_out(action, schedule.shape), ")"),
                        culprit);
}

std::string spelled_out(const Action& action, const PipelineShape& shape) {
  const bool parted = of_microbatch(action.kind) && shape.microbatches > 1;
  return concat(action_name(action, shape.microbatches), " is the ", kind_name(action.kind),
                " of stage ", action.stage, ", mini-batch ", action.minibatch,
                parted ? ", " + microbatch_text(action, shape) : std::string());
}

void refuse_shape(const std::string& message) {
  throw Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message));
}

}  // namespace pipewright
