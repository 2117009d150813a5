/// Two devices with streams, made of this machine's memory and processor, for LibTorch to use like
/// any other (as its device type PrivateUse1). Whatever is queued is computed at once; StreamModel
/// says whether it would have been right on a device that takes its time.
///
/// Every kernel is the CPU's. Convolutions are missing: LibTorch asks such a device for its own.
#pragma once

#include <ATen/core/Tensor.h>

#include "tests/unit/device/stream_model.h"

namespace pipewright::test {

/// The device 0 or 1.
at::Device fake_device(int index);
/// Asked so far whether an event has come, without waiting: every third answer is yes.
int questions_about_events();
/// What a stream's native handle stands for.
StreamModel::Stream fake_stream(void* native_handle);

}  // namespace pipewright::test
