// SPDX-License-Identifier: Apache-2.0
/// Slices of sequences (pipeline.slices): which experiments can be trained in them.
#pragma once

#include "core/config/options.h"
#include "core/experiment/experiment.h"

namespace pipewright {

/// Reports why this experiment cannot have slices, if it asks for more than one: its model, its
/// scheme, or another part that slices do not go with.
void check_slices(const Experiment& experiment, const Value& document, Problems& problems);

}  // namespace pipewright
