// SPDX-License-Identifier: Apache-2.0
/// The transport of `mpi`: activations, gradients and replicas' sums between processes, over the
/// team's wire or, where possible, directly between devices (`wire_links`, `slice_reduction`).
#pragma once

#include <memory>

#include "core/processes/wire_team.h"
#include "core/runtime/devices/device_group.h"
#include "core/runtime/transport.h"

namespace pipewright {

/// The transport of the process that holds worker team.rank(). `groups` must be prepared for the
/// program. All three arguments must outlive it.
std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups& groups);

}  // namespace pipewright
