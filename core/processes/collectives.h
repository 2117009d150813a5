// SPDX-License-Identifier: Apache-2.0
/// Sums and gathers over all processes of a team. All values pass through process 0: these calls
/// are for few and small ones.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pipewright {

class WireTeam;

/// Implementations of Team::sum() and Team::gather(): collective, with the same exceptions.
void sum_over(WireTeam& team, std::span<double> values);
std::vector<std::string> gather_from(WireTeam& team, std::string bytes);

}  // namespace pipewright
