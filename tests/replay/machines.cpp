// SPDX-License-Identifier: Apache-2.0
#include "tests/replay/machines.h"

#include "core/base/as_size.h"
#include "core/cost/cost_table.h"

namespace pipewright::replay {
namespace {

constexpr double kTick = 1.0 / 64;          // s: all seconds are multiples of it
constexpr std::int64_t kUnit = 192;         // bytes: all bytes are; three replicas sum thirds
constexpr double kBandwidth = 1024;         // bytes/s
constexpr double kBusBandwidth = 3 * 1024;  // bytes/s: three messages of an all-reduce share it

/// No two neighbouring stages, and no two costs of a stage, are the same.
std::vector<StageCost> uneven_costs(int stages) {
  std::vector<StageCost> costs;
  for (int k = 0; k < stages; ++k) {
    StageCost& cost = costs.emplace_back();
    cost.forward = (64 + 8 * (k % 3)) * kTick;
    cost.backward = (112 + 16 * (k % 4)) * kTick;
    cost.backward_input = (47 + 9 * (k % 3)) * kTick;
    cost.backward_weight = (59 + 10 * (k % 2)) * kTick;
    cost.head = 21 * kTick;
    cost.update = 6 * kTick;
    cost.new_version = 2 * kTick;
    cost.prediction = 5 * kTick;
    if (k % 2 == 1) cost.fused_prediction = 3 * kTick;
    cost.coding_forward = 1 * kTick;
    cost.coding_backward = (k % 2) * kTick;
    cost.coding_reduce = 4 * kTick;
    cost.input_bytes = (1 + k) * kUnit;
    cost.output_bytes = (2 + k) * kUnit;
    if (k % 3 == 1) cost.sent_bytes = kUnit;
    if (k % 3 == 2) cost.sent_gradient_bytes = 2 * kUnit;
    if (k % 4 == 3) cost.reduced_bytes = {{2 * kUnit, kUnit}};
    cost.activation_bytes = 7 * kUnit;
    cost.peak_bytes = 3 * kUnit;
    cost.peak_adding_bytes = 4 * kUnit;
    cost.freed_bytes = 1 * kUnit;
    cost.peak_bare_bytes = 2 * kUnit;
    cost.parameter_bytes = (6 + k % 3) * kUnit;
    cost.copy_bytes = (k % 2) * kUnit;
    cost.buffer_bytes = 1 * kUnit;
  }
  return costs;
}

/// Two devices on each host; every third device is a straggler, every fourth is fast.
Hardware uneven_hardware(int devices) {
  Hardware hardware = ideal_hardware(devices);
  hardware.name = "links";
  hardware.devices_per_host = 2;
  hardware.within = {.latency = kTick, .bandwidth = 4 * kBandwidth};
  hardware.between = {.latency = 5 * kTick, .bandwidth = kBandwidth};
  for (int d = 0; d < devices; ++d)
    hardware.devices[as_size(d)] = {.speed = d % 4 == 3 ? 2.0 : 1.0,
                                    .slowdown = d % 3 == 1 ? 1.5 : 1.0};
  return hardware;
}

Hardware crowded_hardware(int devices) {
  Hardware hardware = uneven_hardware(devices);
  hardware.name = "bus";
  Bus bus{.name = "all", .crossing = Bus::Crossing::Any, .bandwidth = kBusBandwidth};
  for (int d = 0; d < devices; ++d) bus.devices.push_back(d);
  hardware.buses.push_back(bus);
  hardware.copy_engines = 1;
  hardware.sending_blocks = true;
  return hardware;
}

}  // namespace

std::vector<Machine> machines(const PipelineShape& shape) {
  const std::vector<StageCost> uneven = uneven_costs(shape.stages);
  return {{ideal_hardware(shape.workers()), equal_costs(shape.stages)},
          {uneven_hardware(shape.workers()), uneven, true},
          {crowded_hardware(shape.workers()), uneven}};
}

}  // namespace pipewright::replay
