// SPDX-License-Identifier: Apache-2.0
/// A table of PipeDream's plan.
#pragma once

#include <string>

#include "core/cost/pipedream_partition.h"

namespace pipewright {

/// A table with one row per stage, then the predicted time, and whether our pipelines can run the
/// plan.
std::string render_plan(const Profile& profile, const PipeDreamPlan& plan);

}  // namespace pipewright
