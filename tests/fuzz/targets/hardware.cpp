// SPDX-License-Identifier: Apache-2.0
// Descriptions of hardware. What is taken is a machine that a simulation can compute with: as many
// devices as it says, links and buses between these, and numbers that are none below zero.
#include "core/simulation/hardware.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/document_memory.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

void check_speed(const LinkSpeed& speed) {
  require(std::isfinite(speed.latency) && speed.latency >= 0, "a latency is no time");
  require(speed.bandwidth > 0, "a bandwidth is not above zero");
}

std::string speed_text(const LinkSpeed& speed) {
  return concat(speed.latency, '+', speed.bandwidth, ' ');
}

void check_devices(const Hardware& hardware) {
  const auto count = static_cast<int>(hardware.devices.size());
  require(count >= 1 && count <= 65536, concat(count, " devices"));
  require(hardware.devices_per_host >= 1 && count % hardware.devices_per_host == 0,
          "some devices are on no host");
  for (const Device& device : hardware.devices) {
    require(device.speed > 0 && device.slowdown > 0, "a device never ends");
    require(device.memory >= 0, concat("a device has ", device.memory, " bytes of memory"));
  }
  for (const int device : {0, count - 1}) {
    const double factor = hardware.time_factor(device);
    require(std::isfinite(factor) && factor > 0, concat("times are multiplied by ", factor));
    check_speed(hardware.speed_of(0, device));
    check_speed(hardware.speed_of(device, 0));
  }
}

void check_links(const Hardware& hardware) {
  const auto exists = [&](int device) {
    return device >= 0 && device < static_cast<int>(hardware.devices.size());
  };
  for (const SpecialLink& link : hardware.links) {
    require(exists(link.from) && exists(link.to), "a link ends at no device");
    check_speed(link.speed);
  }
  for (const Bus& bus : hardware.buses) {
    require(std::ranges::all_of(bus.devices, exists) && std::ranges::is_sorted(bus.devices),
            "a bus has devices that are none, or not in order");
    require(bus.bandwidth > 0, "a bus carries nothing");
  }
}

std::string read(std::string_view bytes) {
  Problems problems;
  const Value document = parse_yaml(bytes, "hardware.yaml");
  const Hardware hardware = read_hardware(document, problems);
  problems.throw_if_any();
  check_devices(hardware);
  check_links(hardware);
  require(std::isfinite(hardware.jitter) && hardware.jitter >= 0, "jitter is no number");
  std::string text = concat(hardware.name, ' ', hardware.device_name, ' ', hardware.devices.size(),
                            ' ', hardware.links.size(), ' ', hardware.buses.size(), ' ',
                            hardware.codecs.size(), ' ', hardware.seed, ' ');
  text += speed_text(hardware.within) + speed_text(hardware.between);
  for (const SpecialLink& link : hardware.links) text += speed_text(link.speed);
  return text;
}

/// 65,536 hosts can be asked for in one line: each has a device and three buses with names.
std::size_t most_memory(std::string_view bytes) {
  constexpr std::size_t kHosts = 65536 * (sizeof(Device) + 3 * (sizeof(Bus) + 64));
  return document_memory(bytes) + 2 * kHosts;
}

}  // namespace

const Target kTarget{
    .read = read, .refusals = {ErrorKind::Experiment}, .most_memory = most_memory, .rounds = 3000};

}  // namespace pipewright::fuzz
