// SPDX-License-Identifier: Apache-2.0
/// What an experiment does to the weights, as mathematics from which its edges of stability follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/stability/edges.h"

namespace pipewright {

/// The delays of every stage in that steady state: those that `stability` prints. Throws as below.
std::vector<StageDelay> steady_delays(const Experiment& experiment);

/// The steady state of the experiment's schedule, late in a long training that is not drained, with
/// the optimizer's recurrence and its base learning rate. Empty if the optimizer is no linear
/// recurrence, or another one in each stage. Of an optimizer of groups: of the group whose edge is
/// the smallest. Throws Error{Experiment} if the schedule is not periodic late in a training.
std::optional<Dynamics> dynamics_of(const Experiment& experiment);

/// The same for each group that is a linear recurrence, if it had all weights; the group with the
/// smallest edge first.
struct GroupDynamics {
  std::string option;  ///< OptimizerGroup::option, or "optimizer" without groups
  Dynamics dynamics;
};
std::vector<GroupDynamics> dynamics_of_groups(const Experiment& experiment);

/// The registered names of its gradient rules that the edges leave out: all but those that only
/// change learning rates. None where the optimizer has no edges.
std::vector<std::string> rules_beyond_edges(const Experiment& experiment);

/// A remark to print beside edges that leave these rules out; empty for none.
std::string edges_remark(const std::vector<std::string>& rules);

/// Why an experiment has no dynamics: "the optimizer lamb is no linear recurrence, …".
std::string no_recurrence(const Experiment& experiment);

}  // namespace pipewright
