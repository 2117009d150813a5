// SPDX-License-Identifier: Apache-2.0
/// Copies tensors made on the host (data, targets, masks) to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pipewright {

/// Returns `host` on `device`; `host` itself if that is the CPU, its shape alone if it is
/// LibTorch's meta device. Otherwise it copies through page-locked memory, so that the copy is
/// queued on the current stream and the host does not wait.
at::Tensor upload(const at::Tensor& host, at::Device device);
/// Tensors that this thread has copied so to other devices than the CPU.
std::int64_t uploads_by_thread();

}  // namespace pipewright
