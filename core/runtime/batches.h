// SPDX-License-Identifier: Apache-2.0
/// Interface that gives an execution its data: mini-batches by number, the same for every caller.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "core/stage/layer.h"

namespace pipewright {

/// One slice of n samples cut into `parts` like tensor_split: sizes differ by at most 1, larger
/// first.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};
inline Slice slice_of(std::int64_t n, int parts, int part) {
  const std::int64_t size = n / parts, larger = n % parts;
  return {part * size + (part < larger ? part : larger), size + (part < larger ? 1 : 0)};
}

/// Samples of a mini-batch that belong to one micro-batch of one replica.
struct Share {
  std::int64_t first_sample = 0;     ///< its first sample, counted within the whole mini-batch
  std::int64_t samples = 0;          ///< number of samples of this micro-batch
  std::int64_t replica_samples = 0;  ///< number of samples of its replica
  std::int64_t all_samples = 0;      ///< number of samples of the whole mini-batch
};

/// Indices of samples in the training split, as long as `keeper` lives. Empty: unknown.
struct Samples {
  std::span<const std::int64_t> indices;
  std::shared_ptr<const void> keeper;
};

/// Thread-safe.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual Share share(int minibatch, int replica, int microbatch) const = 0;
  /// Model inputs of that micro-batch, on `device`. Throws Error{Data}.
  virtual Tensors inputs(int minibatch, const Share& share, at::Device device) = 0;
  /// Targets of that micro-batch, on `device`. Throws Error{Data}.
  virtual at::Tensor targets(int minibatch, const Share& share, at::Device device) = 0;
  virtual Samples samples(int /*minibatch*/, const Share&) const { return {}; }
};

}  // namespace pipewright
