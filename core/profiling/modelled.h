// SPDX-License-Identifier: Apache-2.0
/// Times and memory that runs would need on given hardware: their schedules are simulated with the
/// operations and bytes of their layers. Nothing is trained, and no memory for weights is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/records/run_record.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// A number of mini-batches for half of which an asynchronous pipeline is in its steady state.
int steady_minibatches(const Experiment& experiment);

/// Counts operations and bytes of the experiment's layers and turns them into times at the rates of
/// the hardware, which must be known.
Profile counted_profile(const Experiment& experiment, const Hardware& hardware);
/// The source of such times in words: "operations and bytes of the model at the rates of …".
std::string counted_from(const Hardware& hardware);

/// Gives each record, whatever its state, the metrics modelled_samples_per_second,
/// modelled_speedup (over the first record), modelled_bubble,
/// modelled_required_mib_per_s (over all links together, to keep the modelled pace),
/// modelled_link_mib_per_s (what the slowest link used can carry), modelled_state_gib (weights of
/// all versions, gradients and optimizer, of all workers), modelled_memory_gib (all bytes at each
/// worker's peak), modelled_worker_state_gib and modelled_worker_memory_gib (of the worker that has
/// most), modelled_activation_gib (memory less state) and modelled_parameters. Runs with epochs
/// also get modelled_hours, up to the end of their last epoch. Runs that differ only in their seed
/// are modelled once. Throws Error{Experiment} if the hardware has no rates or fewer devices than
/// there are workers.
void add_modelled(std::vector<RunRecord>& runs, const Hardware& hardware);

}  // namespace pipewright
