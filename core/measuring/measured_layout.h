// SPDX-License-Identifier: Apache-2.0
/// What the layout of a training leaves to measurements: the memory format, then the cut. Process 0
/// decides both once, from existing profiles or ones that it measures; from then on they are a
/// format and a list like any other. Functions are collective, unless nothing is open.
#pragma once

#include <string>

#include "core/experiment/experiment.h"
#include "core/measuring/shared_profile.h"
#include "core/runtime/team.h"

namespace pipewright {

/// The experiment's layout with all decided that `pipeline.memory_format: auto` and
/// `pipeline.balance: time | memory` leave open. Throws Error{Experiment}.
Layout settle_layout(const Experiment& experiment, const LayoutRequest& request, Team& team);

/// The same with only the format decided. Without convolutions it is contiguous, and nothing is
/// measured.
Layout settle_memory_format(const Experiment& experiment, const LayoutRequest& request, Team& team);

/// A remark for the user if the experiment asks for channels-last memory in vain, or "".
std::string memory_format_remark(const Experiment& experiment);

}  // namespace pipewright
