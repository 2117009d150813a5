// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/late_value.h"

#include "core/runtime/devices/device_stream.h"
#include "core/tensors/torch.h"

namespace pipewright {

LateValue::LateValue(const at::Tensor& value) : host_(value) {
  if (value.is_cpu()) return;
  const at::NoGradGuard no_grad;
  host_ = at::empty(value.sizes(), at::TensorOptions(value.scalar_type()).pinned_memory(true));
  host_.copy_(value, /*non_blocking=*/true);
  copied_ = recorded_on(current_stream(value.device()));
}

bool LateValue::is_there() const {
  return !copied_ || copied_->query();
}

const at::Tensor& LateValue::read() const {
  if (copied_) copied_->synchronize();
  return host_;
}

}  // namespace pipewright
