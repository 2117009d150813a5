// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/hardware.h"

#include <algorithm>

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

Hardware ideal_hardware(int devices) {
  Hardware hardware;
  hardware.devices.resize(as_size(devices));
  hardware.host = LinkSpeed();
  return hardware;
}

}  // namespace pipewright
