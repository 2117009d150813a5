// SPDX-License-Identifier: Apache-2.0
/// The names of a cut's stages in tables and messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cost/profile.h"

namespace pipewright {

/// "conv1_1 … conv2_2", or "fc1" for a single layer.
std::vector<std::string> stage_names(const Profile& profile, std::span<const std::int64_t> balance);

}  // namespace pipewright
