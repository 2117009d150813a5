/// One order in which a schedule can run, or the deadlock that keeps it from ending.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// All actions, each after what makes its input, each worker's in their order, and no link ever
/// holding more messages than PipelineShape::link_capacity. The schedule's ranges must have been
/// checked. Throws InvalidSchedule that explains the deadlock where there is no such order.
std::vector<ActionPlace> execution_order(const Schedule& schedule, const PassIndex& index);

}  // namespace pipewright
