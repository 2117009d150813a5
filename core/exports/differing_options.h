// SPDX-License-Identifier: Apache-2.0
/// The settings in which the runs of a folder differ besides those that their sweep varies: runs
/// of an earlier version of the experiment file lie beside today's.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// Dotted keys of options that differ between runs and that nobody's sweep varies, sorted. What
/// follows from the varied ones is left out where runs of equal settings agree in it: the options
/// of a part whose name varies, and those of the model where the data set does. So are the names
/// and outputs of runs, and what a run may measure for itself: its balance and memory format.
std::vector<std::string> differing_options(const std::vector<const RunRecord*>& runs);

/// Adds these to what each run of a sweep varies. Does nothing where no run is of a sweep.
void add_differing_options(std::vector<RunRecord>& runs);

}  // namespace pipewright
