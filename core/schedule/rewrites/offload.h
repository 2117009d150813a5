// SPDX-License-Identifier: Apache-2.0
/// Offloading of activations: what a forward keeps for its backwards waits in the memory of the
/// host (Offload) and is brought back in time (Fetch), while the worker goes on computing
/// (PipeOffload, Wan et al., 2025). A device then holds fewer micro-batches, for copies over its
/// link to the host; no bit of the result changes. The inputs of a forward stay on the device.
#pragma once

#include "core/schedule/dependencies.h"
#include "core/schedule/rewrites/rewrite.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The schedule with an Offload right after each forward, and after its auxiliary head if that
/// comes next, and a Fetch so early that at least `ahead` passes of the worker run between it and
/// the first backward of the micro-batch. Forwards with no pass between the two copies are left
/// alone, and so are those that are run again and those that are offloaded already. Fused pairs
/// stay together. Evaluations stay as they are.
Schedule with_offload(Schedule schedule, int ahead);

/// with_offload() as pipeline.offload asks for it.
ScheduleRewrite offloading(int ahead);

bool has_host_copies(const Schedule& schedule);

// Rules of prove() (rules.h).

/// What an offload takes away is there, one fetch brings it back, and no pass needs it meanwhile.
void check_host_copies(const Schedule& schedule, const PassIndex& index);

}  // namespace pipewright
