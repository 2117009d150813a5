// SPDX-License-Identifier: Apache-2.0
/// The rules that prove() holds a schedule to. Each throws InvalidSchedule, with the first action
/// that breaks it. prove.cpp has their order.
#pragma once

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"
#include "core/schedule/versions.h"

namespace pipewright {

/// All numbers are within their ranges, and every action is on the worker of its stage. Throws
/// Error{Schedule}. The other rules count on it.
void check_numbers(const Schedule& schedule);

/// Every pass is there exactly once, and no other.
void check_complete(const Schedule& schedule, const PassIndex& index);
/// Every action that is to run beside the next one begins a fused pair.
void check_pairs(const Schedule& schedule, const PassIndex& index);
/// A stage that learns from a loss does more than relay it, and a BackwardWeight completes a
/// BackwardInput of the same pass.
void check_halves(const Schedule& schedule, const PassIndex& index);
/// A recomputation comes before the backwards that need it.
void check_recomputations(const Schedule& schedule, const PassIndex& index);
/// Every relayed gradient has a receiver, and exactly one later update applies every weight
/// gradient, after a Reduce if there are replicas.
void check_gradients(const Schedule& schedule, const PassIndex& index);
/// No worker has begun a mini-batch when an update of an earlier one needs the gradients of all
/// stages.
void check_meetings(const Schedule& schedule, const PassIndex& index);

/// Both halves of a backward use the same weights.
void check_weights_of_halves(const Schedule& schedule, const PassIndex& index,
                             const Versions& versions);
/// A recomputation uses the weights of its forward, which it repeats, or those of all backwards
/// that need it.
void check_weights_of_recomputations(const Schedule& schedule, const PassIndex& index,
                                     const Versions& versions);

}  // namespace pipewright
