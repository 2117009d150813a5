// SPDX-License-Identifier: Apache-2.0
/// Probes that measure the whole model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/probes/probes.h"
#include "core/tensor_files/safetensors.h"
#include "core/training/plan.h"

namespace pipewright {

/// Whether the experiment has such probes.
bool has_whole_model_probes(const Experiment& experiment);

/// The mini-batches from `first` to before `end` that some of them measures, in order; numbers are
/// counted from the beginning of the training.
std::vector<std::int64_t> measured_minibatches(const Experiment& experiment, std::int64_t first,
                                               std::int64_t end);

/// How many measurements a probe makes of these mini-batches.
std::int64_t measurements_between(const Probe& probe, std::int64_t first, std::int64_t end);

/// Bytes that they hold at least.
struct WholeModelNeed {
  /// [stage] in the host memory of the process that holds replica 0: copies of what the stage has
  /// after each measured mini-batch, until the pipeline is drained.
  std::vector<double> kept;
  double measuring = 0;  ///< on process 0's first device, beside the copies, where it is drained
};
WholeModelNeed whole_model_need(const Plan& plan);

/// The rows of those that measure this mini-batch. `weights` has all parameters and buffers,
/// `divisors` what the optimizer divides steps by, or nothing. Adds the seconds that each probe
/// takes to `costs`.
std::vector<ProbeRow> measured_whole(const Plan& plan, const TensorFile& weights,
                                     const TensorFile& divisors, std::int64_t minibatch,
                                     std::vector<Probes::Cost>& costs);

/// Announces to the user how often each probe will measure from mini-batch `done` of the training
/// on, and the memory of those of the whole model. `bytes`: of a copy of the model. Empty without
/// probes.
std::vector<std::string> announcement(const Plan& plan, std::int64_t done, double bytes);

/// Throws Error{Experiment} at the place of a probe that cannot measure this model, because a layer
/// has no second derivative.
void try_whole_model_probes(const Plan& plan, const TensorFile& weights);

}  // namespace pipewright
