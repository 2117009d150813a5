// SPDX-License-Identifier: Apache-2.0
/// The section `perturb` of an experiment file.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/options.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// Reports problems to the options' list, and returns defaults for wrong values.
Perturbation read_perturbation(Options& root);

/// Reports perturbations that this experiment's model cannot have.
void check_perturbation(const Experiment& experiment, const Value& document, Problems& problems);

/// Refuses perturbations that are as long as the whole training of so many mini-batches. Throws
/// Error{Experiment}.
void check_perturbed_length(const Experiment& experiment, std::int64_t minibatches);

/// A remark for the user that says how the training is disturbed, or "".
std::string perturbation_remark(const Perturbation& perturbation);

}  // namespace pipewright
