// SPDX-License-Identifier: Apache-2.0
/// What only several sections of an experiment file decide together: how the model is cut, where
/// its stages lie, and whether the parts can train together.
#pragma once

#include "core/config/options.h"
#include "core/experiment/experiment.h"
#include "core/experiment/sections.h"

namespace pipewright {

/// Places the stages, by the scheme if the experiment does not, builds the layers, cuts them unless
/// that is measured, and asks the scheme for a schedule of one mini-batch. `document` is the
/// experiment's, for places; `resolved` has every default. All problems are reported; the
/// experiment is unusable if there is one.
void check_together(Experiment& e, const BalanceOption& balance, const Value& document,
                    const Value& resolved, Problems& problems);

}  // namespace pipewright
