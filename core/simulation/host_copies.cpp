// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/host_copies.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/rewrites/offload.h"

namespace pipewright {

void need_speed_of_host_copies(const Schedule& schedule, const Hardware& hardware) {
  if (hardware.host || !has_host_copies(schedule)) return;
  throw Error(ErrorKind::Experiment,
              concat("the schedule offloads activations, and the hardware '", hardware.name,
                     "' does not say how fast its devices copy to the memory of their host; "
                     "expected host.bandwidth_gb_per_s in its description, such as 12 for PCIe "
                     "3.0 with 16 lanes"));
}

HostLinks::HostLinks(const ProvedSchedule& proved, std::span<const StageCost> costs,
                     const Hardware& hardware)
    : slots_(proved.index.slots()),
      costs_(costs),
      hardware_(hardware),
      free_(proved.schedule.workers.size()),
      on_device_(slots_.forwards(), 0) {}

Span HostLinks::copy(int worker, const Action& action, double time, HostCopies& report) {
  const bool away = action.kind == ActionKind::Offload;
  const std::int64_t bytes = costs_[as_size(action.stage)].activation_bytes;
  double& there = on_device_[slots_.forward(action, action.stage)];
  double& free = free_[as_size(worker)][away ? 0 : 1];
  const double begin = std::max({time, free, there});
  free = begin + static_cast<double>(bytes) / hardware_.host->bandwidth;
  there = free + hardware_.host->latency;
  if (away) {
    ++report.offloaded.messages;
    report.offloaded.bytes += bytes;
    report.offloaded.busy += free - begin;
  }
  return {begin, there};
}

double HostLinks::fetched(const Action& pass) const {
  if (!is_pass(pass.kind) || pass.kind == ActionKind::Forward) return 0;
  return on_device_[slots_.forward(pass, pass.stage)];
}

}  // namespace pipewright
