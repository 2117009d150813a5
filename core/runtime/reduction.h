// SPDX-License-Identifier: Apache-2.0
/// The sum of tensors over a stage's replicas: the same bits in whatever order replicas arrive.
/// Replicas may be on different devices; the sum is computed on replica 0's.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <vector>

#include "core/runtime/devices/parcel.h"

namespace pipewright {

/// Gathers one contribution per replica, then holds their sum, added in order 0 … R−1. The workers
/// of all replicas may call it at the same time. No call blocks; the last replica to contribute
/// computes the sum.
class Reduction {
 public:
  explicit Reduction(int replicas) : parts_(static_cast<std::size_t>(replicas)) {}

  /// Takes the replica's tensors, which are final and on `device`, and leaves them undefined. The
  /// last replica to contribute adds them all. Returns whether this call did. Call it on the thread
  /// of the replica's worker.
  bool contribute(int replica, std::vector<at::Tensor>& tensors, at::Device device);
  /// Replaces the replica's tensors by the sum, once it has been computed. Replicas on one device
  /// share its memory, which must not be written to. Call it on the thread of the replica's worker,
  /// before the replica contributes again.
  void take(int replica, std::vector<at::Tensor>& tensors);
  /// How many sums have been computed. An acquire load: the sum is visible to its reader.
  int rounds() const { return rounds_.load(std::memory_order_acquire); }

 private:
  struct Part {
    at::Device device = at::kCPU;
    Parcel own, sum;
  };
  void add();

  std::vector<Part> parts_;  ///< per replica; only add() touches those of others
  std::atomic<int> contributed_ = 0;
  std::atomic<int> rounds_ = 0;
};

}  // namespace pipewright
