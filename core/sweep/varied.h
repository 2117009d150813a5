// SPDX-License-Identifier: Apache-2.0
/// What varies between the points of a sweep, for the commands that print a row for each point.
#pragma once

#include <string>
#include <vector>

#include "core/config/merge.h"

namespace pipewright {

/// The points of a file's sweep. Throws Error{Experiment} if there is none, which says what --sweep
/// does ("simulates") with points, or if the sweep cannot be read.
std::vector<SweepPoint> points_of(const Value& document, const char* does);

/// All keys that vary, in the order in which points name them; the label if points have their own.
std::vector<std::string> varied_keys(const std::vector<SweepPoint>& points);

/// The point's value of a varied key, or of the file itself where the point does not vary it.
Value value_of(const SweepPoint& point, const std::string& key);

/// The name under which the point is compared with others: its label, else its scheme.
std::string candidate_of(const SweepPoint& point);

}  // namespace pipewright
