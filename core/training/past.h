/// What two trainings have in common that differ in their number of epochs.
#pragma once

#include <cstdint>
#include <string>

#include "core/training/plan.h"

namespace pipewright {

/// The learning rate of a mini-batch, counted from the beginning, if so many epochs are trained.
double learning_rate_at(const Experiment& experiment, std::int64_t minibatches_per_epoch,
                        std::int64_t epochs, std::int64_t step);

/// "epoch 3", or "mini-batch 5 of epoch 4": what has been trained, counted from 1.
std::string position_text(std::int64_t minibatches, std::int64_t minibatches_per_epoch);

/// A checkpoint after so many mini-batches of a training of `epochs` epochs is one of this plan,
/// too, if more is left to train and every learning rate so far was the same: the points where the
/// pipeline drains do not depend on how many epochs follow. Throws Error{Experiment} saying why
/// not.
void check_same_past(const Plan& plan, std::int64_t minibatches, int epochs);

}  // namespace pipewright
