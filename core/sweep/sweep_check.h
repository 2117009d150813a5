// SPDX-License-Identifier: Apache-2.0
/// Plans all runs of a sweep as `run` would, without training, for this machine or another.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/config/value.h"
#include "core/measuring/hardware_fit.h"
#include "core/measuring/measured_layout.h"
#include "core/training/plan.h"

namespace pipewright {

/// What is planned, and how it fits into the machine that was given.
using ShowPlan = std::function<void(const std::string& title, std::size_t runs, const Plan& plan,
                                    const std::optional<HardwareFit>& fit)>;

/// Reads every run, measures layers if a cut needs it, opens each data set once, cuts each model
/// and validates each schedule. Runs that differ only in their seed are planned once. For each plan
/// `show` is called with the title of the first such run, their number, and the plan, which is
/// destroyed after the call. With `hardware` nothing is measured, and its devices' memory takes the
/// place of this machine's. Returns the number of runs. Throws the problems of all runs together,
/// each once.
std::size_t check_sweep(const Value& document, const LayoutRequest& request,
                        const std::optional<Hardware>& hardware, const ShowPlan& show);

}  // namespace pipewright
