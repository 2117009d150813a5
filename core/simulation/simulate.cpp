// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/simulate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/predictions.h"
#include "core/simulation/simulate_clock.h"
#include "core/simulation/simulate_memory.h"

namespace pipewright {
namespace {

/// Whether updates or passes spend time on versions of the weights.
bool versions_take_time(const Schedule& schedule, std::span<const StageCost> costs) {
  if (std::ranges::any_of(costs, [](const StageCost& cost) { return cost.new_version > 0; }))
    return true;
  const bool timed = std::ranges::any_of(costs, [](const StageCost& cost) {
    return cost.prediction > 0 || cost.fused_prediction.value_or(0) > 0;
  });
  if (!timed) return false;
  const Predictions predictions = predictions_of(schedule);
  return predictions.any || predictions.by_drift;
}

/// Throws if the schedule has host copies and the hardware does not say how fast they are.
void need_speed_of_host_copies(const Schedule& schedule, const Hardware& hardware) {
  const auto copies = [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return is_host_copy(a.kind); });
  };
  if (hardware.host || std::ranges::none_of(schedule.workers, copies)) return;
  throw Error(ErrorKind::Experiment,
              concat("the schedule offloads activations, and the hardware '", hardware.name,
                     "' does not say how fast its devices copy to the memory of their host; "
                     "expected host.bandwidth_gb_per_s in its description, such as 12 for PCIe "
                     "3.0 with 16 lanes"));
}

/// Throws for times that no number holds, with the message that takes for ever, if one does.
[[noreturn]] void refuse_endless(const Simulation& simulation, const Hardware& hardware) {
  std::string why = "a stage or a reduction takes for ever";
  for (const LinkReport& link : simulation.links) {
    const LinkSpeed speed = hardware.speed_of(link.from, link.to);
    const double seconds =
        speed.latency + static_cast<double>(link.traffic.bytes) / speed.bandwidth;
    if (std::isfinite(seconds)) continue;
    why = concat("messages from worker ", link.from, " to ", link.to, " take for ever");
    break;
  }
  throw Error(ErrorKind::Experiment,
              concat("on the hardware '", hardware.name, "' the simulation never ends: ", why,
                     "; expected larger rates and bandwidths, and smaller latencies and costs"));
}

}  // namespace

double Simulation::utilisation(std::size_t worker) const {
  return makespan > 0 ? workers[worker].computing / makespan : 0;
}

double Simulation::seconds_per_minibatch() const {
  const std::size_t count = minibatch_ends.size();
  if (count < 4) return count == 0 ? 0 : makespan / static_cast<double>(count);
  const std::size_t first = count / 4, last = 3 * count / 4;
  return (minibatch_ends[last] - minibatch_ends[first]) / static_cast<double>(last - first);
}

Simulation simulate(const Schedule& schedule, std::span<const StageCost> costs,
                    const Hardware& hardware, const SimulationOptions& options) {
  PIPEWRIGHT_CHECK(costs.size() == as_size(schedule.shape.stages), "one cost per stage");
  if (hardware.devices.size() < schedule.workers.size())
    throw Error(ErrorKind::Experiment, concat("the hardware '", hardware.name, "' has ",
                                              counted(hardware.devices.size(), "device"),
                                              ", but the schedule needs one for each of ",
                                              counted(schedule.workers.size(), "worker"),
                                              "; raise hosts or devices.count"));
  need_speed_of_host_copies(schedule, hardware);
  Simulation simulation;
  const PassSlots slots(schedule);
  const bool timed = versions_take_time(schedule, costs);
  std::optional<Versions> versions;
  if (options.memory || timed) versions = resolve_versions(schedule);
  ClockTimes times =
      run_clock(schedule, slots, costs, timed ? &*versions : nullptr, hardware, simulation);
  if (!std::isfinite(simulation.makespan)) refuse_endless(simulation, hardware);
  if (options.memory) count_memory(schedule, slots, costs, *versions, times, options, simulation);
  simulation.spans = std::move(times.spans);
  return simulation;
}

}  // namespace pipewright
