// SPDX-License-Identifier: Apache-2.0
/// Tables of profiles, of the cuts that they lead to, and of PipeDream's plans.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/cost/pipedream_partition.h"
#include "core/cost/profile.h"
#include "core/cost/stage_cut.h"

namespace pipewright {

/// A table with one row per layer: times (or operations, if no times were measured), bytes sent,
/// bytes kept, parameters, and the share of the time (or of the operations) as a bar; then the
/// sums.
std::string render_profile(const Profile& profile);

/// A table with one row per stage: layers, time and share, parameters, memory, bytes sent; then
/// what limits the cut.
std::string render_cut(const Profile& profile, const StageMemories& memories, const CutRules& rules,
                       std::span<const std::int64_t> balance);

/// A table with one row per stage, then the predicted time, and whether our pipelines can run the
/// plan.
std::string render_plan(const Profile& profile, const PipeDreamPlan& plan);

}  // namespace pipewright
