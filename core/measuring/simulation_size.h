// SPDX-License-Identifier: Apache-2.0
/// What a simulation itself takes of the memory of this machine.
#pragma once

#include "core/experiment/experiment.h"

namespace pipewright {

/// Throws Error{Data}, naming actions and bytes, if simulating so many mini-batches takes more than
/// this process can get. `written`: every action goes into a file, as with --json and --trace,
/// which takes ten times as much. Makes the schedule of two mini-batches, whose actions it counts.
void check_simulation_size(const Experiment& experiment, int minibatches, bool written);

}  // namespace pipewright
