// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/reduction.h"

#include <algorithm>

#include "core/tensors/torch.h"

namespace pipewright {

bool Reduction::contribute(int replica, std::vector<at::Tensor>& tensors, at::Device device) {
  Part& part = parts_[static_cast<std::size_t>(replica)];
  part.device = device;
  Tensors own;
  for (at::Tensor& tensor : tensors) own.push_back(std::move(tensor));
  part.own = depart(std::move(own), device);
  // The last to contribute sees all parts; no replica contributes again before the sum is computed.
  if (contributed_.fetch_add(1, std::memory_order_acq_rel) + 1 < std::ssize(parts_)) return false;
  add();
  contributed_.store(0, std::memory_order_relaxed);
  rounds_.fetch_add(1, std::memory_order_release);
  return true;
}

void Reduction::add() {
  const at::Device here = parts_[0].device;
  Tensors sum = arrive(std::move(parts_[0].own));
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    const Tensors part = arrive(depart(arrive(std::move(parts_[r].own)), here));
    for (std::size_t p = 0; p < part.size(); ++p)
      if (part[p].defined()) sum[p] = sum[p].defined() ? at::add(sum[p], part[p]) : part[p];
  }
  for (Part& part : parts_) part.sum = depart(sum, part.device);
}

void Reduction::take(int replica, std::vector<at::Tensor>& tensors) {
  Part& part = parts_[static_cast<std::size_t>(replica)];
  std::ranges::move(arrive(std::move(part.sum)), tensors.begin());
}

}  // namespace pipewright
