// SPDX-License-Identifier: Apache-2.0
/// The schedules of the registered schemes for a pipeline.
#pragma once

#include <functional>
#include <string>

#include "core/schedule/prove.h"

namespace pipewright {

/// Hands out, one after the other, the schedules of all registered schemes with their default
/// options that can run in this shape, also those that would place stages elsewhere if nobody told
/// them, with as many chunks as its placement has stages on a worker; first those that place them
/// so by themselves. Without those that read a file. Ends early where `take` returns false.
void for_each_built_in(
    const PipelineShape& shape,
    const std::function<bool(const std::string& name, const ProvedSchedule& proved)>& take);

}  // namespace pipewright
