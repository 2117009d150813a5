/// All runs of a sweep, planned as `run` would plan them, without training.
#pragma once

#include <functional>
#include <string>

#include "core/config/value.h"
#include "core/profiling/measured_balance.h"
#include "core/training/plan.h"

namespace pipewright {

/// Reads every run, measures layers where a cut asks for that, opens each data set once, cuts each
/// model, proves each schedule; runs that differ in their seed only are planned once, and `show` is
/// called for each plan: with the first such run's title, how many there are, and the plan, which
/// is gone after the call. Returns the number of runs. Throws the problems of all runs together,
/// each once.
std::size_t check_sweep(
    const Value& document, const BalanceRequest& request,
    const std::function<void(const std::string& title, std::size_t runs, const Plan& plan)>& show);

}  // namespace pipewright
