// SPDX-License-Identifier: Apache-2.0
// What schedules hold over time: versions of weights, and micro-batches whose backward is to come.
// Where hardware is known the report has bytes, too.
#include <array>
#include <map>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/page/sections.h"
#include "core/schedule/slots.h"
#include "core/simulation/simulate.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostMemoryLines = 8;

/// The bytes that stand for one version of a stage's weights, or for the activations of one
/// micro-batch. They are so many that the weights which stages lend each other, whose bytes are the
/// real ones, never add up to one of them.
constexpr std::int64_t kWhole = std::int64_t{1} << 42;

/// Costs in which the simulator's seconds are slots, and its bytes are whole things.
StageCost cost_in_slots() {
  const auto slots = [](ActionKind kind) { return static_cast<double>(slots_of(kind)); };
  StageCost cost;
  cost.forward = slots(ActionKind::Forward);
  cost.backward = slots(ActionKind::Backward);
  cost.backward_input = slots(ActionKind::BackwardInput);
  cost.backward_weight = slots(ActionKind::BackwardWeight);
  cost.head = slots(ActionKind::Head);
  cost.activation_bytes = kWhole;
  cost.parameter_bytes = kWhole;
  return cost;
}

/// The sum over workers of a part of their memory, at each moment at which it changes.
std::vector<ChartPoint> sum_over_workers(const Simulation& simulation,
                                         std::int64_t MemoryUse::*part) {
  std::map<double, std::int64_t> changes;
  for (const WorkerReport& worker : simulation.workers) {
    std::int64_t before = 0;
    for (const MemoryStep& step : worker.memory) {
      changes[step.time] += step.use.*part - before;
      before = step.use.*part;
    }
  }
  std::vector<ChartPoint> points;
  std::int64_t held = 0;
  for (const auto& [time, change] : changes) {
    held += change;
    const std::int64_t count = held / kWhole;
    const auto height = static_cast<double>(count);
    if (points.empty() || points.back().y != height) points.push_back({time, height, 0, 1, {}});
  }
  if (!points.empty() && points.back().x < simulation.makespan)
    points.push_back({simulation.makespan, points.back().y, 0, 1, {}});
  return points;
}

struct HeldPart {
  const char* what;
  std::int64_t MemoryUse::*part;
};
constexpr std::array kHeldParts{
    HeldPart{"versions of a stage’s weights, all stages together", &MemoryUse::weights},
    HeldPart{"micro-batches kept for their backward, all stages together",
             &MemoryUse::activations}};

/// Two charts for schedules of so many stages.
std::vector<Chart> charts_of_stages(int stages, const std::vector<const ReportSchedule*>& all) {
  std::vector<Chart> charts;
  for (const HeldPart& held : kHeldParts)
    charts.push_back({.title = concat(counted(stages, "stage"), ": ", std::string_view(held.what)),
                      .x_label = "slot",
                      .y_label = held.part == &MemoryUse::weights ? "versions" : "micro-batches",
                      .from_zero = true});
  for (const ReportSchedule* const each : all) {
    if (charts.front().lines.size() == kMostMemoryLines) break;
    const Schedule& schedule = each->proved->schedule;
    const std::vector<StageCost> costs(as_size(schedule.shape.stages), cost_in_slots());
    const Simulation simulation =
        simulate(*each->proved, costs, ideal_hardware(static_cast<int>(schedule.workers.size())),
                 {.memory_over_time = true});
    for (std::size_t i = 0; i < charts.size(); ++i)
      charts[i].lines.push_back({.name = each->title,
                                 .kind = ChartLine::Kind::Steps,
                                 .points = sum_over_workers(simulation, kHeldParts[i].part),
                                 .series = each->series});
  }
  if (all.size() > kMostMemoryLines)
    for (Chart& chart : charts)
      add_note(chart, concat(counted(all.size() - kMostMemoryLines, "schedule"),
                             " more would not be told apart and are left out."));
  return charts;
}

}  // namespace

std::vector<Chart> memory_charts(const Report& report) {
  std::map<int, std::vector<const ReportSchedule*>> by_stages;
  for (const ReportSchedule& each : report.schedules)
    if (each.proved) by_stages[each.proved->schedule.shape.stages].push_back(&each);
  SeriesLooks looks = report.looks;
  std::vector<Chart> charts;
  for (const auto& [stages, all] : by_stages)
    for (Chart& chart : charts_of_stages(stages, all)) {
      looks.give(chart);
      charts.push_back(std::move(chart));
    }
  return charts;
}

PageSection memory_section(const Report& report) {
  PageSection section{.id = "memory", .title = "Memory over time"};
  section.body = chart_figures(report.memory);
  const std::vector<Chart> charts = memory_charts(report);
  if (!charts.empty())
    section.body +=
        "<p class=\"quiet\">Of the schedules above, in slots: a forward takes one, a backward "
        "two.</p>\n";
  section.body += chart_figures(charts);
  return section;
}

}  // namespace pipewright
