// SPDX-License-Identifier: Apache-2.0
/// A cut of a model into stages, as a table for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/cost/stage_cut.h"

namespace pipewright {

/// A table with one row per stage: layers, time and share, parameters, memory, bytes sent; then
/// what limits the cut.
std::string render_cut(const Profile& profile, const StageMemories& memories, const CutRules& rules,
                       std::span<const std::int64_t> balance);

}  // namespace pipewright
