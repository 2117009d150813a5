// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/idle_parts.h"

#include <algorithm>
#include <vector>

namespace pipewright {
namespace {

/// Stages that all take the mean of these times, without bytes.
std::vector<StageCost> equal_stages(std::span<const StageCost> costs) {
  StageCost mean;
  const auto add = [&](double StageCost::*seconds) {
    for (const StageCost& cost : costs) mean.*seconds += cost.*seconds;
    mean.*seconds /= static_cast<double>(costs.size());
  };
  for (double StageCost::*seconds :
       {&StageCost::forward, &StageCost::backward, &StageCost::backward_input,
        &StageCost::backward_weight, &StageCost::backward_sent, &StageCost::backward_input_sent,
        &StageCost::head, &StageCost::update, &StageCost::new_version, &StageCost::prediction,
        &StageCost::coding_forward, &StageCost::coding_backward, &StageCost::coding_reduce})
    add(seconds);
  for (std::optional<double> StageCost::*seconds :
       {&StageCost::fused_prediction, &StageCost::fused_pair}) {
    if (!std::ranges::all_of(costs,
                             [&](const StageCost& cost) { return (cost.*seconds).has_value(); }))
      continue;
    mean.*seconds = 0;
    for (const StageCost& cost : costs) *(mean.*seconds) += *(cost.*seconds);
    *(mean.*seconds) /= static_cast<double>(costs.size());
  }
  return std::vector<StageCost>(costs.size(), mean);
}

/// The same devices, whose transfers take no time.
Hardware with_free_transfers(Hardware hardware) {
  hardware.within = hardware.between = {};
  hardware.host = LinkSpeed();
  hardware.links.clear();
  hardware.buses.clear();
  hardware.copy_engines = 0;
  hardware.sending_blocks = false;
  hardware.receives = Receives::AnyOrder;
  return hardware;
}

}  // namespace

IdleParts idle_parts(const ProvedSchedule& proved, std::span<const StageCost> costs,
                     const Hardware& hardware, const Simulation& simulation) {
  const double all = simulation.bubble * simulation.makespan;
  const auto idle_seconds = [&](std::span<const StageCost> stages, const Hardware& on) {
    const Simulation other = simulate(proved, stages, on, {.memory = false});
    return std::min(all, other.bubble * other.makespan);
  };
  if (all == 0) return {};
  Hardware ideal = ideal_hardware(static_cast<int>(proved.schedule.workers.size()));
  ideal.overlap = hardware.overlap;
  const double balanced = idle_seconds(equal_stages(costs), ideal);
  const double uneven = std::max(balanced, idle_seconds(costs, with_free_transfers(hardware)));
  return {.schedule = balanced / simulation.makespan,
          .stages = (uneven - balanced) / simulation.makespan,
          .transfers = (all - uneven) / simulation.makespan};
}

}  // namespace pipewright
