// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/invalid_schedule.h"

#include "core/base/as_size.h"

namespace pipewright {

InvalidSchedule::InvalidSchedule(const std::string& message, ActionPlace culprit)
    : Error(ErrorKind::Schedule, concat("the schedule is not valid: ", message),
            culprit == kNowhere ? std::string()
                                : concat("worker ", culprit.first, ", action ", culprit.second)),
      culprit_(culprit) {}

void refuse(const Schedule& schedule, ActionPlace culprit, const std::string& message) {
  const Action& action = schedule.workers[as_size(culprit.first)][as_size(culprit.second)];
  throw InvalidSchedule(concat(action_name(action, schedule.shape.microbatches), " ", message),
                        culprit);
}

}  // namespace pipewright
