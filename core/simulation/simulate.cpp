// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/simulate.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/simulation/host_copies.h"
#include "core/simulation/simulate_clock.h"
#include "core/simulation/simulate_memory.h"

namespace pipewright {
namespace {

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

void check_devices(const Hardware& hardware, std::size_t workers) {
  if (hardware.devices.size() < workers)
    throw Error(ErrorKind::Experiment,
                concat("the hardware '", hardware.name, "' has ",
                       counted(hardware.devices.size(), "device"),
                       ", but the schedule needs one for each of ", counted(workers, "worker"),
                       "; raise hosts or devices.count"));
}

Simulation simulate(const ProvedSchedule& proved, std::span<const StageCost> costs,
                    const Hardware& hardware, const SimulationOptions& options) {
  const Schedule& schedule = proved.schedule;
  PIPEWRIGHT_CHECK(costs.size() == as_size(schedule.shape.stages), "one cost per stage");
  check_devices(hardware, schedule.workers.size());
  need_speed_of_host_copies(schedule, hardware);
  Simulation simulation;
  ClockTimes times = run_clock(proved, costs, hardware, simulation, options.transfers);
  if (!std::isfinite(simulation.makespan)) refuse_endless(simulation, hardware);
  if (options.memory) count_memory(proved, costs, times, options, simulation);
  simulation.spans = std::move(times.spans);
  return simulation;
}

std::string unlimited_links_remark(const Hardware& hardware, const Simulation& simulation) {
  const auto unlimited = [&](const LinkReport& link) {
    const LinkSpeed speed = hardware.speed_of(link.from, link.to);
    return hardware.host_of(link.from) != hardware.host_of(link.to) && speed.latency == 0 &&
           std::isinf(speed.bandwidth) && std::ranges::none_of(hardware.buses, [&](const Bus& bus) {
             return std::isfinite(bus.bandwidth) && bus.carries(link.from, link.to);
           });
  };
  const auto first = std::ranges::find_if(simulation.links, unlimited);
  if (first == simulation.links.end()) return {};
  return concat("the hardware '", hardware.name,
                "' does not limit links between hosts such as that from worker ", first->from,
                " to ", first->to,
                ", so messages take no time there; expected a bandwidth, as in between: "
                "{bandwidth_gb_per_s: 1.25}");
}

}  // namespace pipewright
