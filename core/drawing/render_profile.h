// SPDX-License-Identifier: Apache-2.0
/// Tables of profiles.
#pragma once

#include <string>

#include "core/cost/profile.h"

namespace pipewright {

/// A table with one row per layer: times (or operations, if no times were measured), bytes sent,
/// bytes kept, parameters, and the share of the time (or of the operations) as a bar; then the
/// sums.
std::string render_profile(const Profile& profile);

}  // namespace pipewright
