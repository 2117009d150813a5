// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/search_text.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/json.h"

namespace pipewright {

std::string percent_text(double share) {
  constexpr double kTenths = 1000;
  return number_text(std::round(kTenths * share) / 10) + " %";
}

std::string gap_text(double seconds, double bound) {
  const double gap = gap_of(seconds, bound);
  constexpr double kTenths = 1000;
  if (gap == 0) return "proved";
  return concat("within ", number_text(std::ceil(kTenths * gap) / 10), " %");
}

std::string scope_name(const PaceBound& bound) {
  return bound.in_turn ? "in turn" : "all";
}

std::string limits_text(const ScheduleLimits& limits) {
  std::string text;
  if (std::isfinite(limits.live))
    text += concat(", at most ", counted(static_cast<int>(limits.live), "live forward"),
                   " on a worker");
  if (!limits.memory.empty()) {
    const auto [least, most] = std::ranges::minmax(limits.memory);
    text += concat(", at most ", bytes_text(least),
                   least == most ? "" : concat(" to ", bytes_text(most)), " on a worker");
  }
  if (limits.staleness > 0)
    text += concat(", weights at most ", counted(limits.staleness, "update"), " old");
  return text;
}

namespace {

std::string unsteady_text(const SearchedSchedule& found) {
  if (found.pace.repeats) return "";
  return concat(", fill and drain included, as no part of ",
                counted(found.proved->schedule.shape.minibatches, "mini-batch"),
                " repeats itself (more --minibatches may show one)");
}

/// The schedules that the bound is about, if it is not about all.
std::string scope_text(const SearchedSchedule& found) {
  if (!found.bound.in_turn) return {};
  return "scope     the bound is proved only of schedules in which each worker ends a mini-batch "
         "before it begins the next\n";
}

}  // namespace

std::string search_text(const SearchedSchedule& found) {
  const std::string scope = scope_text(found);
  std::string text = concat(
      "pace      ", time_text(found.pace.seconds), " a mini-batch", unsteady_text(found),
      found.gap() == 0
          ? ": proved to be the fastest"
          : concat(": ", gap_text(found.pace.seconds, found.bound.seconds), " of the fastest"),
      scope.empty() ? "" : " within the scope", "\nbound     ", time_text(found.bound.seconds),
      ": ", found.bound.why, "\n", scope, "bubble    ", percent_text(found.bubble()),
      " of all workers' time", found.pace.repeats ? " in the steady part" : "", "\nlive      ",
      list_text(most_live(*found.proved)), " forwards at most on each worker\n");
  if (found.built_in.empty())
    return text + "built-in  no scheme with its default options keeps to these limits\n";
  return text + concat("built-in  ", time_text(found.built_in_seconds), " with ", found.built_in,
                       ", the fastest scheme with default options within these limits\n");
}

Value search_value(const SearchedSchedule& found) {
  Value value = mapping_of({{"seconds", Value::of(found.pace.seconds)},
                            {"steady", Value::of(found.pace.repeats)},
                            {"bound", Value::of(found.bound.seconds)},
                            {"gap", Value::of(found.gap())},
                            {"scope", Value::of(scope_name(found.bound))},
                            {"bubble", Value::of(found.bubble())},
                            {"from", Value::of(found.from.empty() ? "search" : found.from)}});
  if (!found.built_in.empty()) {
    value.at_or_add("built_in") = Value::of(found.built_in);
    value.at_or_add("built_in_seconds") = Value::of(found.built_in_seconds);
  }
  std::vector<Value> live, peaks;
  for (const int count : most_live(*found.proved)) live.push_back(Value::of(count));
  for (const WorkerReport& worker : found.simulation.workers)
    peaks.push_back(Value::of(worker.peak.total()));
  value.at_or_add("live") = Value::sequence(std::move(live));
  value.at_or_add("peak_bytes") = Value::sequence(std::move(peaks));
  return value;
}

}  // namespace pipewright
