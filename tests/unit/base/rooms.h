// SPDX-License-Identifier: Apache-2.0
/// The rooms of the house, as the tables of arrows_test.cpp have them. A room is named by its
/// folder, "core/codecs/kinds".
#pragma once

#include <map>
#include <set>
#include <string>

namespace pipewright {

/// kMayLookInto: every room, and behind it the rooms that it may include, separated by blanks.
const std::map<std::string, std::string>& rooms_and_views();

/// kWithoutLibTorch.
const std::set<std::string>& rooms_without_libtorch();

}  // namespace pipewright
