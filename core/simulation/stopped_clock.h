// SPDX-License-Identifier: Apache-2.0
/// The error for a schedule whose simulation stops before its end.
#pragma once

#include <vector>

#include "core/schedule/deadlock.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Throws Error{Schedule}, which names the hardware and explains what the workers wait for.
[[noreturn]] void refuse_stop(const Schedule& schedule, const PassIndex& index,
                              const Hardware& hardware, const std::vector<Wait>& waits);

}  // namespace pipewright
