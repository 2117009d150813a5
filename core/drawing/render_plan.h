/// PipeDream's plan for eyes.
#pragma once

#include <string>

#include "core/cost/pipedream_partition.h"

namespace pipewright {

/// One row per stage, the predicted time, and whether our pipelines can run it.
std::string render_plan(const Profile& profile, const PipeDreamPlan& plan);

}  // namespace pipewright
