// SPDX-License-Identifier: Apache-2.0
/// Whether two trainings that differ in their number of epochs share their past.
#pragma once

#include <cstdint>
#include <string>

#include "core/training/plan.h"

namespace pipewright {

/// The learning rate of mini-batch `step`, counted from the beginning, in a training of `epochs`
/// epochs.
double learning_rate_at(const Experiment& experiment, std::int64_t minibatches_per_epoch,
                        std::int64_t epochs, std::int64_t step);

/// A position in words, counted from 1: "epoch 3" or "mini-batch 5 of epoch 4".
std::string position_text(std::int64_t minibatches, std::int64_t minibatches_per_epoch);

/// Checks that a checkpoint after so many mini-batches of a training of `epochs` epochs is also one
/// of this plan: more must be left to train, and every learning rate so far must be equal. Drain
/// points do not depend on how many epochs follow. Throws Error{Experiment} with the reason.
void check_same_past(const Plan& plan, std::int64_t minibatches, int epochs);

}  // namespace pipewright
