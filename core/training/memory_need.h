/// Memory that a training takes for certain, held against what the machine has before any is taken:
/// where memory is promised freely, the system would otherwise kill the run later on.
#pragma once

#include "core/training/plan.h"

namespace pipewright {

/// Of one stage replica. Activations and messages are not counted: they depend on more than the
/// plan.
struct StageNeed {
  double parameters = 0;  ///< how many
  int copies = 1;         ///< of them at once, the schedule's versions and predictions
  double bytes = 0;       ///< of the copies, the gradient and the optimizer's state
};
StageNeed stage_need(const Plan& plan, int stage);

/// "1.20 GiB for parameters, gradients and optimizer state; this machine has 23.40 GiB", of one
/// process that holds all stages. Says also when less than that is free now.
std::string memory_text(const Plan& plan);

/// Collective. Throws Error{Data}, in a team of several Error{Worker}, where the stages of a
/// process need more than its limits allow, or the processes of a host more than it has. Names the
/// stage that needs the most. Stages on devices other than the CPU are not counted.
void check_memory(const Plan& plan, Team& team);
/// The same of a plan that is only looked at, with this machine's memory. Processes of
/// `execution: mpi` may be on other machines, so nothing of theirs is refused.
void check_memory(const Plan& plan);

}  // namespace pipewright
