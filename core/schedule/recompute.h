/// Recomputation of activations: a forward keeps its inputs only, and is run again, with the very
/// weights it read, right before the first backward that needs what it threw away (Chen et al.,
/// 2016; GPipe, Huang et al., 2019). Activations of one micro-batch instead of all are alive at a
/// stage, for one more forward each; no bit of the result changes.
#pragma once

#include <cstdint>
#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// ExceptLast keeps the activations of each mini-batch's last micro-batch, whose backward GPipe
/// begins as soon as its forward has ended. So a mini-batch of one micro-batch is never recomputed
/// by it.
enum class Recomputation : std::uint8_t { Never, Always, ExceptLast };

/// The schedule with a Recompute before the first backward of every micro-batch concerned, at every
/// stage. It waits for no message, so a worker does it while the gradient is under way. Evaluations
/// stay as they are.
Schedule with_recomputation(Schedule schedule, Recomputation which);

/// What `check` says of it: "" or that it changes nothing in mini-batches of so many micro-batches.
std::string recomputation_remark(Recomputation which, int microbatches);

}  // namespace pipewright
