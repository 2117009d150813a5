// SPDX-License-Identifier: Apache-2.0
/// Times and memory that runs would need on given hardware, in the steady state of their pipelines,
/// simulated with the operations and bytes of their layers. Nothing is trained, and no memory for
/// weights is needed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Gives each record, whatever its state, the figures that `simulate --sweep` has for its
/// experiment in the steady state of its pipeline: the metrics modelled_samples_per_second,
/// modelled_speedup (over the first record), modelled_bubble,
/// modelled_required_mib_per_s (over all links together, to keep the modelled pace),
/// modelled_link_mib_per_s (what the slowest link used can carry), modelled_state_gib (weights of
/// all versions, gradients and optimizer, of all workers), modelled_memory_gib (all bytes at each
/// worker's peak), modelled_worker_state_gib and modelled_worker_memory_gib (of the worker that has
/// most), modelled_activation_gib (memory less state) and modelled_parameters. Runs that
/// are done also get modelled_hours, up to the end of their last epoch. Runs that differ only in
/// their seed are modelled once. Returns the origins of the times in words, each once. Throws
/// Error{Experiment} if the hardware has no rates, does not compute in a run's precision, or has
/// fewer devices than there are workers.
std::set<std::string> add_modelled(std::vector<RunRecord>& runs, const Hardware& hardware);

}  // namespace pipewright
