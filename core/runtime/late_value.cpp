#include "core/runtime/late_value.h"

#include "core/runtime/device_stream.h"
#include "core/stage/torch.h"

namespace pipewright {

LateValue::LateValue(const at::Tensor& scalar) : host_(scalar) {
  if (scalar.is_cpu()) return;
  const at::NoGradGuard no_grad;
  host_ = at::empty({}, at::TensorOptions(scalar.scalar_type()).pinned_memory(true));
  host_.copy_(scalar, /*non_blocking=*/true);
  copied_ = recorded_on(current_stream(scalar.device()));
}

bool LateValue::is_there() const {
  return !copied_ || copied_->query();
}

double LateValue::read() const {
  if (copied_) copied_->synchronize();
  return host_.item<double>();
}

}  // namespace pipewright
