// SPDX-License-Identifier: Apache-2.0
/// One order in which a schedule can run, or the deadlock that keeps it from ending.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// An order of all actions in which each comes after the action that makes its input, each worker
/// keeps its own order, and no link ever holds more than PipelineShape::link_capacity messages. The
/// schedule's ranges must have been checked. Throws InvalidSchedule, which explains the deadlock,
/// if there is no such order.
std::vector<ActionPlace> execution_order(const Schedule& schedule, const PassIndex& index);

}  // namespace pipewright
