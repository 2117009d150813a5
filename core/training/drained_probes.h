// SPDX-License-Identifier: Apache-2.0
/// Probes that measure the whole model where the pipeline is drained.
#pragma once

#include <vector>

#include "core/probes/probes.h"
#include "core/stage/files/safetensors.h"
#include "core/training/plan.h"

namespace pipewright {

/// Whether the experiment has such probes, and whether one is due after the mini-batches `first` to
/// `end` of the training have been trained.
bool has_drained_probes(const Experiment& experiment);
bool drained_probe_is_due(const Experiment& experiment, std::int64_t first, std::int64_t end);

/// The rows of those that are due. `weights` has all parameters and buffers, `preconditioner` what
/// the optimizer divides steps by, or nothing. Adds the seconds that each probe takes to `costs`.
std::vector<ProbeRow> measured_where_drained(const Plan& plan, const TensorFile& weights,
                                             const TensorFile& preconditioner, std::int64_t first,
                                             std::int64_t end, std::vector<Probes::Cost>& costs);

/// Throws Error{Experiment} at the place of a probe that cannot measure this model, because a layer
/// has no second derivative.
void try_drained_probes(const Plan& plan, const TensorFile& weights);

}  // namespace pipewright
