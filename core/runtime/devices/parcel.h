/// Tensors on their way from one worker to another, in one process.
///
/// They may set out before the device has computed them, and arrive before they are there: what
/// orders the devices' work is an event, never a wait of the host. Between two devices they are
/// copied on streams of the sender's own, so that neither worker's kernels wait for a copy that
/// others need. LibTorch's copy lets one device write another's memory where the machine can.
#pragma once

#include <c10/core/Event.h>

#include <optional>
#include <utility>

#include "core/stage/layer.h"

namespace pipewright {

struct Parcel {
  Tensors tensors;
  std::optional<c10::Event> ready;  ///< none: they are, as on a CPU
};

/// Sends tensors, which are all on one device or undefined, to the device `to`. On the thread that
/// computes them, after their kernels were queued. A CPU that receives from another device is the
/// exception to "no wait": the sender waits for the copy.
Parcel depart(Tensors tensors, at::Device to);

/// The tensors, for kernels queued on the calling thread's current stream from now on.
Tensors arrive(Parcel parcel);

}  // namespace pipewright
