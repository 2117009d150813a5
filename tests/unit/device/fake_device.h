// SPDX-License-Identifier: Apache-2.0
/// Two fake devices with streams, which LibTorch uses like any other (as its device type
/// PrivateUse1). They use the machine's own memory and processor and perform queued work at once.
/// StreamModel tells whether the result would be right on an asynchronous device, too.
///
/// All kernels are those of the CPU. Convolutions are missing, because such a device needs its own.
#pragma once

#include <ATen/core/Tensor.h>

#include "tests/unit/device/stream_model.h"

namespace pipewright::test {

/// The fake device 0 or 1.
at::Device fake_device(int index);
/// Number of queries of events so far. Every third query is answered with yes.
int questions_about_events();
/// The stream of a native handle.
StreamModel::Stream fake_stream(void* native_handle);

}  // namespace pipewright::test
