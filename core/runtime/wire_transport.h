/// Activations and gradients between processes, over a team's wire.
///
/// A message is the contiguous memory of its tensors, one part each, and nothing else: the receiver
/// has asked for it beforehand, in the shape of the link's message before. Where the shape is
/// another (the first message, a smaller last mini-batch), empty parts answer what was asked for,
/// and an announcement of the new shapes goes ahead. Both sides know the order of a link's messages
/// from the schedule, so none carries a name.
#pragma once

#include <memory>

#include "core/runtime/transport.h"
#include "core/runtime/wire_team.h"

namespace pipewright {

/// For the process that holds worker team.rank(). Both outlive it.
std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team);

}  // namespace pipewright
