// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/hardware.h"

#include <algorithm>
#include <numeric>

#include "core/base/as_size.h"
#include "core/base/text.h"

namespace pipewright {

bool Bus::carries(int from, int to) const {
  const bool sends = std::ranges::binary_search(devices, from);
  const bool receives = std::ranges::binary_search(devices, to);
  switch (crossing) {
    case Crossing::Inside: return sends && receives;
    case Crossing::Leaving: return sends && !receives;
    case Crossing::Entering: return receives && !sends;
    case Crossing::Any: return sends || receives;
  }
  return false;
}

LinkSpeed Hardware::speed_of(int from, int to) const {
  for (const SpecialLink& link : links)
    if (link.from == from && link.to == to) return link.speed;
  return host_of(from) == host_of(to) ? within : between;
}

double Hardware::time_factor(int device) const {
  const Device& one = devices[as_size(device)];
  return one.slowdown / one.speed;
}

double Hardware::mean_time_factor() const {
  double factor = 0;
  for (int device = 0; device < static_cast<int>(devices.size()); ++device)
    factor += time_factor(device) / static_cast<double>(devices.size());
  return factor;
}

Hardware laid_out(const Hardware& hardware, int workers, int replicas) {
  if (!hardware.replicas_first || replicas == 1 || as_size(workers) > hardware.devices.size())
    return hardware;
  const int all = static_cast<int>(hardware.devices.size()), each = workers / replicas;
  std::vector<int> worker_on(
      as_size(all));  // each device; those that have none stay in their place
  std::iota(worker_on.begin(), worker_on.end(), 0);
  for (int worker = 0; worker < workers; ++worker)
    worker_on[as_size(worker % each * replicas + worker / each)] = worker;
  Hardware laid = hardware;
  laid.replicas_first = false;
  laid.hosts.resize(as_size(all));
  for (int device = 0; device < all; ++device) {
    const std::size_t worker = as_size(worker_on[as_size(device)]);
    laid.devices[worker] = hardware.devices[as_size(device)];
    laid.hosts[worker] = hardware.host_of(device);
  }
  for (SpecialLink& link : laid.links) {
    link.from = worker_on[as_size(link.from)];
    link.to = worker_on[as_size(link.to)];
  }
  for (Bus& bus : laid.buses) {
    for (int& device : bus.devices) device = worker_on[as_size(device)];
    std::ranges::sort(bus.devices);
  }
  return laid;
}

Hardware ideal_hardware(int devices) {
  Hardware hardware;
  hardware.devices.resize(as_size(devices));
  hardware.host = LinkSpeed();
  return hardware;
}

}  // namespace pipewright
