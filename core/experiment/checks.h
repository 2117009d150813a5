// SPDX-License-Identifier: Apache-2.0
/// What only several sections of an experiment file decide together: where stages lie, how the
/// model is cut, and whether the parts can train together.
#pragma once

#include "core/config/options.h"
#include "core/experiment/experiment.h"
#include "core/experiment/sections.h"

namespace pipewright {

/// Sets the worker of each stage, by the scheme if the experiment does not, and the device of each
/// worker. `document` is the experiment's, for places.
void place_stages(Experiment& e, const Value& document, Problems& problems);

/// Builds the layers, cuts them unless that is measured, and asks the scheme for a schedule of one
/// mini-batch. `resolved` has every default. All problems are reported; the experiment is unusable
/// if there is one.
void check_together(Experiment& e, const BalanceOption& balance, const Value& document,
                    const Value& resolved, Problems& problems);

}  // namespace pipewright
