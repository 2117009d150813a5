// SPDX-License-Identifier: Apache-2.0
/// Memory over time of a report's schedules on described hardware.
#pragma once

#include <vector>

#include "core/page/page_content.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// A chart for each number of stages: GiB of the worker that holds most, over the seconds of the
/// first mini-batches. Schedules whose costs cannot be counted are left out.
std::vector<Chart> memory_on(const Hardware& hardware, const Report& report);

}  // namespace pipewright
