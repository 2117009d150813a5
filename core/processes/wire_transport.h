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
/// program; null: all messages go through the host. `first_link` is the number that its first link
/// has for channels, above those of a transport in use. All arguments must outlive it.
std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups* groups, int first_link = 0);

}  // namespace pipewright
