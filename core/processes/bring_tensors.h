// SPDX-License-Identifier: Apache-2.0
/// Copies named tensors from another process to process 0.
#pragma once

#include "core/runtime/team.h"
#include "core/tensors/named_tensors.h"

namespace pipewright {

/// Collective: process 0 gets the tensors `own` of process `from`, in its order, on the CPU; all
/// others get none. They are sent in pieces, so that little memory is needed beyond the tensors.
NamedTensors bring_tensors(Team& team, int from, const NamedTensors& own);

}  // namespace pipewright
