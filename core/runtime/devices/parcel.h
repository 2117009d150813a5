// SPDX-License-Identifier: Apache-2.0
/// Tensors on their way from one worker to another, in one process.
///
/// The host may pass them on before a device has computed them: events order the work of devices,
/// and the host never waits. Between two devices they are copied on streams of the sender's own, so
/// that neither worker's kernels wait for a copy that others need. LibTorch's copy uses peer access
/// between devices where the machine has it.
#pragma once

#include <c10/core/Event.h>

#include <optional>
#include <utility>

#include "core/nn/layer.h"

namespace pipewright {

struct Parcel {
  Tensors tensors;
  std::optional<c10::Event> ready;  ///< completes when they are; none: they are (on a CPU)
};

/// Sends tensors, which are all on one device or undefined, to the device `to`. Call it on the
/// thread that queued their kernels, after that. A copy from a device to the CPU is the exception
/// to "the host never waits": the sender waits for it.
Parcel depart(Tensors tensors, at::Device to);

/// Returns the tensors for kernels that the calling thread queues on its current stream from now
/// on.
Tensors arrive(Parcel parcel);

}  // namespace pipewright
