// SPDX-License-Identifier: Apache-2.0
#include "core/tensors/upload.h"

#include "core/tensors/torch.h"

namespace pipewright {

namespace {
thread_local std::int64_t uploads = 0;
}

std::int64_t uploads_by_thread() {
  return uploads;
}

at::Tensor upload(const at::Tensor& host, at::Device device) {
  if (device.is_cpu()) return host;
  if (device.is_meta()) return host.to(device);
  ++uploads;
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace pipewright
