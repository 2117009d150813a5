// SPDX-License-Identifier: Apache-2.0
/// One order in which a schedule can run, or the deadlock that keeps it from ending.
#pragma once

#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The first action that follows one of a later mini-batch on its worker; kNowhere if every worker
/// has its mini-batches one after another, as Schedule::updates_meet needs them.
ActionPlace minibatch_out_of_turn(const Schedule& schedule);

/// An order of all actions in which each comes after the action that makes its input, each worker
/// keeps its own order, and no link ever holds more than PipelineShape::link_capacity messages;
/// with Schedule::updates_meet also after all actions of earlier mini-batches. The schedule's
/// ranges must have been checked and, if its updates meet, that no mini-batch is out of turn.
/// Throws InvalidSchedule, which explains the deadlock, if there is no such order.
std::vector<ActionPlace> execution_order(const Schedule& schedule, const PassIndex& index);

}  // namespace pipewright
