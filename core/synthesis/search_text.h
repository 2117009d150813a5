// SPDX-License-Identifier: Apache-2.0
/// The result of a search, for people and for programs.
#pragma once

#include <string>

#include "core/config/value.h"
#include "core/synthesis/schedule_search.h"

namespace pipewright {

/// "12.5 %".
std::string percent_text(double share);

/// "proved" where a pace equals its bound, else "within 4 %": it is at most so much longer than
/// that of the fastest.
std::string gap_text(double seconds, double bound);

/// The schedules that a bound is about: "all", or "in turn", those in which each worker ends a
/// mini-batch before it begins the next.
std::string scope_name(const PaceBound& bound);

/// ", at most 4 live forwards on a worker, weights at most 1 update old"; "" without limits.
std::string limits_text(const ScheduleLimits& limits);

/// Pace, bound, bubble, the fastest built-in scheme and what workers hold, a line each.
std::string search_text(const SearchedSchedule& found);

/// The same in seconds and bytes.
Value search_value(const SearchedSchedule& found);

}  // namespace pipewright
