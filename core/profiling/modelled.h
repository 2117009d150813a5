/// What runs would take on given hardware: their schedules, simulated with the operations and bytes
/// of their layers. Nothing is trained, and nothing is as large as the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/records/run_record.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Reads a description of hardware as in experiments/hardware. Throws Error{Experiment} with all
/// that is wrong, Error{Data} without such a file.
Hardware load_hardware(const std::filesystem::path& file);

/// So many that an asynchronous pipeline is in its steady state for half of them.
int steady_minibatches(const Experiment& experiment);

/// Operations and bytes of the experiment's layers, and the times they come to on the hardware,
/// whose rates must be known.
Profile counted_profile(const Experiment& experiment, const Hardware& hardware);
/// Where such times come from, for people: "operations and bytes of the model at the rates of …".
std::string counted_from(const Hardware& hardware);

/// Gives each record, whatever its state, the metrics modelled_samples_per_second,
/// modelled_speedup (over the first record), modelled_bubble,
/// modelled_required_mib_per_s (over all links together, to keep the modelled pace),
/// modelled_link_mib_per_s (what the slowest link used can carry), modelled_state_gib (weights of
/// all versions, gradients and optimizer, of all workers), modelled_memory_gib (all bytes at each
/// worker's peak), modelled_worker_state_gib and modelled_worker_memory_gib (of the worker that has
/// most), modelled_activation_gib (memory less state) and modelled_parameters; and to runs with
/// epochs modelled_hours, at the end of the last one. Runs that differ in their seed only are
/// modelled once. Throws Error{Experiment} for hardware whose rates are not known, or with fewer
/// devices than workers.
void add_modelled(std::vector<RunRecord>& runs, const Hardware& hardware);

}  // namespace pipewright
