// SPDX-License-Identifier: Apache-2.0
#include "core/training/past.h"

#include "core/base/error.h"

namespace pipewright {

double learning_rate_at(const Experiment& experiment, std::int64_t minibatches_per_epoch,
                        std::int64_t epochs, std::int64_t step) {
  const LrSchedule& schedule = experiment.lr_schedule;
  const double base = experiment.optimizer->lr();
  if (schedule.per_step()) return schedule.at(base, step, epochs * minibatches_per_epoch);
  return schedule.at(base, step / minibatches_per_epoch, epochs);
}

std::string position_text(std::int64_t minibatches, std::int64_t minibatches_per_epoch) {
  const std::int64_t whole = minibatches / minibatches_per_epoch,
                     more = minibatches % minibatches_per_epoch;
  return more == 0 ? concat("epoch ", whole) : concat("mini-batch ", more, " of epoch ", whole + 1);
}

void check_same_past(const Plan& plan, std::int64_t minibatches, int epochs) {
  const Experiment& e = *plan.experiment;
  const std::int64_t per_epoch = plan.minibatches, now = e.train.epochs;
  const std::string change = concat("train.epochs ", epochs, " → ", now);
  if (minibatches >= plan.drains.minibatches)
    throw Error(ErrorKind::Experiment,
                concat(change, ": the training is beyond that, its last checkpoint is after ",
                       position_text(minibatches, per_epoch),
                       "; ask for more epochs, or give another --out"),
                e.where("train.epochs"));
  if (now == epochs) return;
  const std::int64_t stride = e.lr_schedule.per_step() ? 1 : per_epoch;
  for (std::int64_t step = 0; step < minibatches; step += stride) {
    const double was = learning_rate_at(e, per_epoch, epochs, step);
    const double would_be = learning_rate_at(e, per_epoch, now, step);
    if (was == would_be) continue;
    const std::string at = e.lr_schedule.per_step() ? position_text(step + 1, per_epoch)
                                                    : concat("epoch ", step / per_epoch + 1);
    throw Error(ErrorKind::Experiment,
                concat(change,
                       ": this is another training from the beginning, because the learning "
                       "rate at ",
                       at, " was ", was, " and would be ", would_be,
                       "; give another --out, or --overwrite to begin anew"),
                e.where("train.epochs"));
  }
}

}  // namespace pipewright
