/// The sum of tensors over a stage's replicas, the same bits whoever comes first. Replicas may be
/// on different devices; the sum is made on replica 0's.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <vector>

#include "core/runtime/devices/parcel.h"

namespace pipewright {

/// Gathers one contribution per replica, then holds their sum, added in order 0 … R−1. Each
/// replica's worker calls it from a thread of its own, all at the same time; none waits in it, and
/// the last to contribute makes the sum while others do what they do.
class Reduction {
 public:
  explicit Reduction(int replicas) : parts_(static_cast<std::size_t>(replicas)) {}

  /// Takes the replica's tensors, which are final and on that device, and leaves them undefined.
  /// The last one to come adds them all. Returns whether that happened. On the thread of the
  /// replica's worker.
  bool contribute(int replica, std::vector<at::Tensor>& tensors, at::Device device);
  /// Once that has happened: the tensors, as many, become the sum (memory shared by the replicas of
  /// one device, not to be written to). On the thread of the replica's worker, and before it
  /// contributes again.
  void take(int replica, std::vector<at::Tensor>& tensors);
  /// How many sums have been made. What made them is visible to whoever reads it.
  int rounds() const { return rounds_.load(std::memory_order_acquire); }

 private:
  struct Part {
    at::Device device = at::kCPU;
    Parcel own, sum;
  };
  void add();

  std::vector<Part> parts_;  ///< each its replica's own, but while the sum is made
  std::atomic<int> contributed_ = 0;
  std::atomic<int> rounds_ = 0;
};

}  // namespace pipewright
