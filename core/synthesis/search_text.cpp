// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/search_text.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/wording.h"

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

std::string limits_text(const ScheduleLimits& limits) {
  std::string text;
  if (std::isfinite(limits.live))
    text += concat(", at most ", counted(static_cast<int>(limits.live), "live forward"),
                   " on a worker");
  if (!limits.memory.empty()) {
    const auto [least, most] = std::ranges::minmax(limits.memory);
    text += concat(", at most ", bytes_text(static_cast<double>(least)),
                   least == most ? "" : concat(" to ", bytes_text(static_cast<double>(most))),
                   " on a worker");
  }
  if (limits.staleness > 0)
    text += concat(", weights at most ", counted(limits.staleness, "update"), " old");
  return text;
}

std::string search_text(const SearchedSchedule& found) {
  std::string text =
      concat("pace      ", time_text(found.seconds), " a mini-batch: ",
             found.gap() == 0 ? "proved to be the fastest"
                              : gap_text(found.seconds, found.bound.seconds) + " of the fastest",
             "\nbound     ", time_text(found.bound.seconds), ", which worker ", found.bound.worker,
             " needs for ", found.bound.why, "\nbubble    ", percent_text(found.bubble()),
             " of all workers' time in the steady part\nlive      ",
             list_text(most_live(found.schedule)), " forwards at most on each worker\n");
  if (found.built_in.empty()) return text + "built-in  no scheme keeps to these limits\n";
  return text + concat("built-in  ", time_text(found.built_in_seconds), " with ", found.built_in,
                       ", the fastest scheme within these limits\n");
}

Value search_value(const SearchedSchedule& found) {
  Value value = Value::mapping();
  value.at_or_add("seconds") = Value::of(found.seconds);
  value.at_or_add("bound") = Value::of(found.bound.seconds);
  value.at_or_add("gap") = Value::of(found.gap());
  value.at_or_add("bubble") = Value::of(found.bubble());
  value.at_or_add("from") = Value::of(found.from.empty() ? "search" : found.from);
  if (!found.built_in.empty()) {
    value.at_or_add("built_in") = Value::of(found.built_in);
    value.at_or_add("built_in_seconds") = Value::of(found.built_in_seconds);
  }
  std::vector<Value> live, peaks;
  for (const int count : most_live(found.schedule)) live.push_back(Value::of(count));
  for (const WorkerReport& worker : found.simulation.workers)
    peaks.push_back(Value::of(worker.peak.total()));
  value.at_or_add("live") = Value::sequence(std::move(live));
  value.at_or_add("peak_bytes") = Value::sequence(std::move(peaks));
  return value;
}

}  // namespace pipewright
