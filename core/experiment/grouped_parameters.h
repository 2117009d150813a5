// SPDX-License-Identifier: Apache-2.0
/// Which parameters of the model belong to which group of the optimizer.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The parameters of a group or, with the option "optimizer", those of no group.
struct GroupShare {
  std::string option;
  std::size_t tensors = 0;
  std::int64_t parameters = 0;
};

/// The shares of all groups in their order; none if the optimizer has no groups. Auxiliary heads
/// count where the model is cut.
std::vector<GroupShare> group_shares(const Experiment& experiment);

/// "optimizer.groups.0" of "optimizer.groups[0]", as paths of values have it.
std::string dotted(const std::string& option);

/// Reports groups that have no parameter, and parameters that no group has.
void check_groups(const Experiment& e, const Value& document, Problems& problems);

}  // namespace pipewright
