/// Activations, gradients and replicas' sums between processes: over the team's wire, or where two
/// processes' devices can, from one to the other (`wire_links`, `slice_reduction`).
#pragma once

#include <memory>

#include "core/runtime/devices/device_group.h"
#include "core/runtime/processes/wire_team.h"
#include "core/runtime/transport.h"

namespace pipewright {

/// For the process that holds worker team.rank(); `groups` have been prepared for the program. All
/// three outlive it.
std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups& groups);

}  // namespace pipewright
