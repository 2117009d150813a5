// SPDX-License-Identifier: Apache-2.0
#include "tools/report/charts.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/experiment/reading.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostLinesOfMemory = 8;
constexpr int kMinibatchesOfMemory = 12;

/// What the worker holds whose peak is the largest.
std::vector<ChartPoint> fullest_worker(const Simulation& simulation) {
  const auto fullest = std::ranges::max_element(
      simulation.workers, {}, [](const WorkerReport& worker) { return worker.peak.total(); });
  std::vector<ChartPoint> points;
  for (const MemoryStep& step : fullest->memory) {
    const double held = static_cast<double>(step.use.total()) / kGiB;
    if (points.empty() || points.back().y != held) points.push_back({step.time, held, 0, 1, {}});
  }
  return points;
}

}  // namespace

std::vector<Chart> memory_on(const Hardware& hardware, const Report& report) {
  std::map<int, Chart> charts;
  std::map<int, std::size_t> left_out;
  CostSource source(CostFiles{});
  for (const ReportSchedule& each : report.schedules) {
    if (!each.proved) continue;
    const int stages = each.proved->schedule.shape.stages;
    Chart& chart = charts[stages];
    if (chart.lines.size() == kMostLinesOfMemory) {
      ++left_out[stages];
      continue;
    }
    chart.title = concat(counted(stages, "stage"), ": the worker that holds most, as modelled on ",
                         hardware.name);
    chart.x_label = "seconds";
    chart.y_label = "GiB";
    try {
      SteadySimulator simulator(read_experiment(report.runs[each.runs.front()].config.whole()),
                                source);
      const SteadySimulation steady =
          simulator.on(laid_out(hardware, simulator.shape()),
                       {.minibatches = kMinibatchesOfMemory, .memory_over_time = true});
      chart.lines.push_back({.name = each.title,
                             .kind = ChartLine::Kind::Steps,
                             .points = fullest_worker(steady.simulation),
                             .series = each.series});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Bug) throw;
    }
  }
  std::vector<Chart> all;
  for (auto& [stages, chart] : charts) {
    if (left_out[stages] > 0)
      add_note(chart, concat(counted(left_out[stages], "schedule"),
                             " more would not be told apart and are left out."));
    all.push_back(std::move(chart));
  }
  return all;
}

}  // namespace pipewright
