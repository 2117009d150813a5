// SPDX-License-Identifier: Apache-2.0
/// Two schedules, action by action.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/prove.h"

namespace pipewright {

/// The actions of one worker in two schedules.
struct WorkerDifference {
  std::size_t actions_a = 0, actions_b = 0;
  std::size_t same = 0;           ///< places with the same action that reads the same weights
  std::size_t other_weights = 0;  ///< places with the same action that reads other weights
  /// The first place at which they differ, and what each has there: "F3 with weights 2→5(+3)", or
  /// "nothing"; where names are equal, with what they do not say: "B3 with weights 2 (scale 0.5)".
  std::optional<std::size_t> first;
  std::string first_a, first_b;
};

/// Compares what stands at equal places of equal workers. The model's own loss, that of the last
/// stage, is the same loss whatever the number of stages. A worker that only one schedule has is
/// compared with one without actions.
std::vector<WorkerDifference> schedule_differences(const ProvedSchedule& a,
                                                   const ProvedSchedule& b);

/// A line for each worker, then one for all.
std::string schedule_difference_text(const std::vector<WorkerDifference>& workers);

}  // namespace pipewright
