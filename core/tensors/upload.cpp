// SPDX-License-Identifier: Apache-2.0
#include "core/tensors/upload.h"

#include "core/tensors/torch.h"

namespace pipewright {

at::Tensor upload(const at::Tensor& host, at::Device device) {
  if (device.is_cpu()) return host;
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace pipewright
