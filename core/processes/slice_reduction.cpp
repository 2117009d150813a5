// SPDX-License-Identifier: Apache-2.0
#include "core/processes/slice_reduction.h"

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"

namespace pipewright {

SliceReduction::SliceReduction(WireTeam& team, DeviceGroup* group, int channel,
                               std::vector<int> peers, int replica)
    : team_(team),
      group_(group),
      channel_(channel),
      peers_(std::move(peers)),
      replica_(as_size(replica)) {}

void SliceReduction::run(std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> defined;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) defined.push_back(flattened(tensor));
  if (defined.empty()) return;
  at::Tensor own = at::cat(defined);
  if (group_ == nullptr) own = own.cpu();
  const at::Tensor sum = at::empty_like(own);
  slice(sum, replica_).copy_(fold(own));
  share(sum);
  std::int64_t next = 0;
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    tensor = reshaped(sum.narrow(0, next, tensor.numel()), tensor.sizes(), in_channels_last(tensor))
                 .to(tensor.device());
    next += tensor.numel();
  }
}

at::Tensor SliceReduction::slice(const at::Tensor& flat, std::size_t replica) const {
  const auto count = std::ssize(peers_), r = static_cast<std::ptrdiff_t>(replica);
  const std::int64_t begin = flat.numel() * r / count, end = flat.numel() * (r + 1) / count;
  return flat.narrow(0, begin, end - begin);
}

/// Sends each replica its slice of our gradient; returns the sum of all replicas for our own slice.
at::Tensor SliceReduction::fold(const at::Tensor& own) {
  std::vector<at::Tensor> slices, parts;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    slices.push_back(slice(own, r));
    parts.push_back(r == replica_ ? slice(own, r) : at::empty_like(slice(own, replica_)));
  }
  exchange(slices, parts);
  at::Tensor sum = parts[0];
  for (std::size_t r = 1; r < parts.size(); ++r) sum = at::add(sum, parts[r]);
  return sum;
}

void SliceReduction::share(const at::Tensor& sum) {
  const std::vector<at::Tensor> own(peers_.size(), slice(sum, replica_));
  std::vector<at::Tensor> slices;
  for (std::size_t r = 0; r < peers_.size(); ++r) slices.push_back(slice(sum, r));
  exchange(own, slices);
}

void SliceReduction::exchange(const std::vector<at::Tensor>& out,
                              const std::vector<at::Tensor>& in) {
  if (group_ == nullptr) {
    exchange_on_host(out, in);
    return;
  }
  std::vector<DeviceGroup::Transfer> sends, receives;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (r == replica_) continue;
    if (out[r].nbytes() > 0) sends.emplace_back(static_cast<int>(r), out[r]);
    if (in[r].nbytes() > 0) receives.emplace_back(static_cast<int>(r), in[r]);
  }
  group_->exchange(sends, receives);
}

void SliceReduction::exchange_on_host(const std::vector<at::Tensor>& out,
                                      const std::vector<at::Tensor>& in) {
  std::vector<Mail::Ticket> tickets(peers_.size());
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (r == replica_) continue;
    tickets[r] = team_.receive(peers_[r], channel_, in[r]);
    team_.send(peers_[r], channel_, out[r]);
  }
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (r != replica_)
      PIPEWRIGHT_CHECK(team_.wait(tickets[r]) == in[r].nbytes(),
                       "another replica's gradient has other parameters");
}

}  // namespace pipewright
