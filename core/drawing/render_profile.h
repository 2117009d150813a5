/// Profiles for eyes.
#pragma once

#include <string>

#include "core/cost/profile.h"

namespace pipewright {

/// One row per layer: times (or operations, where none were measured), what it hands on, what it
/// keeps, parameters, and its share of the time (or the operations) as a bar; then the sums.
std::string render_profile(const Profile& profile);

/// "12.3 ms", in the unit that suits.
std::string time_text(double seconds);

}  // namespace pipewright
