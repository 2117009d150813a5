// SPDX-License-Identifier: Apache-2.0
/// The format for `pipeline.memory_format: auto`. Process 0 decides it once, from profiles of the
/// model in both formats; from then on it is a format like any other.
#pragma once

#include <string>

#include "core/experiment/experiment.h"
#include "core/measuring/shared_profile.h"
#include "core/runtime/team.h"

namespace pipewright {

/// Decides the format and puts it into `pipeline` and `resolved`. Without convolutions it is
/// contiguous, and nothing is measured. Collective, except that it does nothing if the format is
/// known.
void settle_memory_format(Experiment& experiment, const LayoutRequest& request, Team& team);

/// A remark for the user if the experiment asks for channels-last memory in vain, or "".
std::string memory_format_remark(const Experiment& experiment);

}  // namespace pipewright
