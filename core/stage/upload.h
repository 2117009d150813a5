/// What the host makes for a device: data, targets, masks.
#pragma once

#include <ATen/core/Tensor.h>

namespace pipewright {

/// A tensor of the host on that device; itself where that is the CPU. Elsewhere it goes through
/// page-locked memory, so that the copy is queued on the current stream and nobody waits for it.
at::Tensor upload(const at::Tensor& host, at::Device device);

}  // namespace pipewright
