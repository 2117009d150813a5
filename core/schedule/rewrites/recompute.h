// SPDX-License-Identifier: Apache-2.0
/// Recomputation of activations: a forward keeps its inputs only, and is run again, with the same
/// weights, right before the first backward that needs the activations it discarded (Chen et al.,
/// 2016; GPipe, Huang et al., 2019). So a stage holds the activations of one micro-batch at a time
/// instead of all, for one more forward per micro-batch; no bit of the result changes.
#pragma once

#include <cstdint>

#include "core/schedule/rewrites/rewrite.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// ExceptLast keeps the activations of each mini-batch's last micro-batch, whose backward GPipe
/// begins as soon as its forward has ended. So it recomputes nothing if a mini-batch is one
/// micro-batch.
enum class Recomputation : std::uint8_t { Never, Always, ExceptLast };

/// The schedule with a Recompute before the first backward of every micro-batch concerned, at every
/// stage, unless its scheme has put one there. It waits for no message, so a worker does it while
/// the gradient is under way. Evaluations stay as they are.
Schedule with_recomputation(Schedule schedule, Recomputation which);

/// with_recomputation() as pipeline.recompute asks for it.
ScheduleRewrite recomputing(Recomputation which);

}  // namespace pipewright
