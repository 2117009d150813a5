#include "core/runtime/reduction.h"

#include "core/stage/torch.h"

namespace pipewright {

bool Reduction::contribute(int replica, Stage& stage) {
  stages_[static_cast<std::size_t>(replica)] = &stage;
  if (++contributed_ < static_cast<int>(stages_.size())) return false;
  const std::size_t parameters = stages_[0]->gradients().size();
  for (std::size_t p = 0; p < parameters; ++p) {
    at::Tensor sum = stages_[0]->gradients()[p];
    for (std::size_t r = 1; r < stages_.size(); ++r) {
      const at::Tensor& part = stages_[r]->gradients()[p];
      if (part.defined()) sum = sum.defined() ? at::add(sum, part) : part;
    }
    for (Stage* const each : stages_) each->gradients()[p] = sum;
  }
  contributed_ = 0;
  ++rounds_;
  return true;
}

}  // namespace pipewright
