// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/memory_curve.h"

#include <algorithm>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/synthesis/search_text.h"

namespace pipewright {
namespace {

CurvePoint point_of(const SearchedSchedule& found, int staleness, int live) {
  CurvePoint point{.staleness = staleness,
                   .live = live,
                   .bubble = found.bubble(),
                   .seconds = found.pace.seconds,
                   .bound = found.bound.seconds,
                   .scope = scope_name(found.bound),
                   .built_in = found.built_in,
                   .built_in_seconds = found.built_in.empty() ? 0 : found.built_in_seconds};
  for (const WorkerReport& worker : found.simulation.workers)
    point.peak = std::max(point.peak, worker.peak.total());
  return point;
}

/// Takes the schedule of another search, which keeps to the limits of this one, if it is faster.
void take_if_faster(SearchedSchedule& found, const SearchedSchedule& other) {
  if (other.pace.seconds >= found.pace.seconds * (1 - kSumRounding)) return;
  found.from = other.from;
  found.proved = other.proved;
  found.simulation = other.simulation;
  found.pace = other.pace;
  if (found.pace.seconds < found.bound.seconds) found.bound = other.bound;
}

/// The most stages that a worker has: it must hold a forward of each.
int least_live(const PipelineShape& shape) {
  std::vector<int> stages(as_size(shape.workers_per_replica()), 0);
  for (int stage = 0; stage < shape.stages; ++stage) ++stages[as_size(shape.worker_of(stage, 0))];
  return std::ranges::max(stages);
}

}  // namespace

std::vector<CurvePoint> memory_curve(const PipelineShape& shape, std::span<const StageCost> costs,
                                     const Hardware& hardware, ScheduleLimits limits,
                                     SynthesisSettings settings,
                                     const std::function<std::function<bool()>()>& stop) {
  std::vector<CurvePoint> curve;
  // Two mini-batches for each stage fill any pipeline, so what may be staler is no faster.
  const int most_stale = std::min(limits.staleness, 2 * shape.stages);
  auto search = [&](double live) {
    limits.live = live;
    if (stop) settings.stop = stop();
    return search_schedule(shape, costs, hardware, limits, settings);
  };
  for (limits.staleness = 0; limits.staleness <= most_stale; ++limits.staleness) {
    const SearchedSchedule fastest = search(kUnlimited);
    const int needed = std::ranges::max(most_live(*fastest.proved));
    SearchedSchedule found;
    for (int live = least_live(shape); live <= needed; ++live) {
      const SearchedSchedule before = std::exchange(found, search(live));
      if (live > least_live(shape)) take_if_faster(found, before);
      if (live == needed) take_if_faster(found, fastest);
      curve.push_back(point_of(found, limits.staleness, live));
      if (found.pace.seconds <= fastest.pace.seconds * (1 + kSumRounding)) break;
    }
  }
  return curve;
}

std::string curve_csv(const std::vector<CurvePoint>& curve) {
  std::string text =
      "staleness,live,peak_bytes,bubble,seconds,bound,gap,built_in,built_in_seconds,scope\n";
  for (const CurvePoint& point : curve)
    text += concat(
        point.staleness, ",", point.live, ",", point.peak, ",", point.bubble, ",", point.seconds,
        ",", point.bound, ",", gap_of(point.seconds, point.bound), ",", point.built_in, ",",
        point.built_in.empty() ? "" : number_text(point.built_in_seconds), ",", point.scope, "\n");
  return text;
}

std::string curve_text(const std::vector<CurvePoint>& curve) {
  TextTable table({"staleness", "live", "memory", "bubble", "pace", "gap", "built-in"}, {6});
  for (const CurvePoint& point : curve)
    table.add(
        {concat(point.staleness), concat(point.live), bytes_text(point.peak),
         percent_text(point.bubble), time_text(point.seconds), gap_text(point.seconds, point.bound),
         point.built_in.empty() ? "–"
                                : concat(point.built_in, " ", time_text(point.built_in_seconds))});
  return table.text();
}

}  // namespace pipewright
