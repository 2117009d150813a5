// SPDX-License-Identifier: Apache-2.0
/// A remark on stages that make fewer updates than there are mini-batches.
#pragma once

#include <optional>
#include <string>

#include "core/schedule/loop.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// "stage 1 updates its weights 43 times in 44 mini-batches, so …" if a stage of some replica makes
/// fewer updates than there are mini-batches; it names the stage with the fewest and says how many
/// others there are. "" if every stage updates in every mini-batch, or if the schedule only
/// evaluates. Such a schedule is valid: gradients are summed until the next update. A loop counts
/// with all its rounds.
std::string update_remark(const Schedule& schedule, const std::optional<Loop>& loop = {});

}  // namespace pipewright
