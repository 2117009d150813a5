#include "core/runtime/reduction.h"

#include <algorithm>

#include "core/stage/torch.h"

namespace pipewright {

bool Reduction::contribute(int replica, Stage& stage) {
  Part& part = parts_[static_cast<std::size_t>(replica)];
  part.stage = &stage;
  Tensors gradients;
  for (at::Tensor& gradient : stage.gradients()) gradients.push_back(std::move(gradient));
  part.gradients = depart(std::move(gradients), stage.device());
  if (++contributed_ < static_cast<int>(parts_.size())) return false;
  add();
  contributed_ = 0;
  ++rounds_;
  return true;
}

void Reduction::add() {
  const at::Device here = parts_[0].stage->device();
  Tensors sum = arrive(std::move(parts_[0].gradients));
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    const Tensors part = arrive(depart(arrive(std::move(parts_[r].gradients)), here));
    for (std::size_t p = 0; p < part.size(); ++p)
      if (part[p].defined()) sum[p] = sum[p].defined() ? at::add(sum[p], part[p]) : part[p];
  }
  for (Part& part : parts_) part.sum = depart(sum, part.stage->device());
}

void Reduction::take(int replica) {
  Part& part = parts_[static_cast<std::size_t>(replica)];
  std::ranges::move(arrive(std::move(part.sum)), part.stage->gradients().begin());
}

}  // namespace pipewright
