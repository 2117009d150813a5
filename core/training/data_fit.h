// SPDX-License-Identifier: Apache-2.0
/// Whether a data set and a model belong together.
#pragma once

#include "core/experiment/experiment.h"

namespace pipewright {

/// Checks that the open data set has the model's task, samples of the shape that it takes, and no
/// more tokens and classes than it knows, and that the metrics are of that task. Throws
/// Error{Experiment} at the model or the metrics.
void check_fit(const Experiment& e, const Dataset& dataset);

}  // namespace pipewright
