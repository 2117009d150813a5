// SPDX-License-Identifier: Apache-2.0
/// Checks the memory that a training certainly needs against that of the machine, before any is
/// allocated: a system that overcommits memory would kill the run later.
#pragma once

#include "core/stage/holdings.h"
#include "core/training/plan.h"

namespace pipewright {

/// Memory that each replica of a stage needs, without activations and messages, which depend on
/// more than the plan.
StageNeed stage_need(const Plan& plan, int stage);

/// A remark on the need of one process that holds all stages: "1.20 GiB for parameters, gradients
/// and optimizer state; this machine has 23.40 GiB", with what probes need besides, and whether
/// less than the need is free now.
std::string memory_text(const Plan& plan);

/// Collective. Throws Error{Data}, or Error{Worker} in a team of several, if the stages of a
/// process and its probes of the whole model need more than its limits allow or the processes of a
/// host more than it has. The error names the stage that needs most. Stages on devices other than
/// the CPU are not counted.
void check_memory(const Plan& plan, Team& team);
/// As above, for `check`, with this machine's memory. Does nothing for `execution: mpi`, whose
/// processes may run on other machines.
void check_memory(const Plan& plan);

}  // namespace pipewright
