// SPDX-License-Identifier: Apache-2.0
/// The part of `pipewright simulate` that simulates all points of a sweep.
#pragma once

#include "core/measuring/cost_source.h"
#include "tools/command.h"

namespace pipewright {

/// Declares --sweep and the options that belong to it.
void declare_sweep_options(CommandLine& line);

/// Throws Error{Experiment} if one of those is given without --sweep.
void refuse_sweep_options(const CommandLine& line);

/// The files of costs that the line names.
CostFiles cost_files(const CommandLine& line);
/// The number that --minibatches gives; 0 without it. Throws Error{Experiment} below 1.
int given_minibatches(const CommandLine& line);

/// Simulates all points, prints the table, and writes the files that are asked for. Returns the
/// exit code. Throws Error{Experiment} if no point can be simulated.
int run_simulated_sweep(const CommandLine& line);

}  // namespace pipewright
