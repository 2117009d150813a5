/// Where an execution gets its data: mini-batches by number, the same for everybody who asks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/stage/layer.h"

namespace pipewright {

/// The cut of n samples into `parts` like tensor_split: sizes differ by at most 1, larger first.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};
inline Slice slice_of(std::int64_t n, int parts, int part) {
  const std::int64_t size = n / parts, larger = n % parts;
  return {part * size + (part < larger ? part : larger), size + (part < larger ? 1 : 0)};
}

/// Which samples of its mini-batch one micro-batch of one replica has.
struct Share {
  std::int64_t first_sample = 0;     ///< within the whole mini-batch
  std::int64_t samples = 0;          ///< of this micro-batch
  std::int64_t replica_samples = 0;  ///< of its replica
  std::int64_t all_samples = 0;      ///< of the whole mini-batch
};

/// Thread-safe.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual Share share(int minibatch, int replica, int microbatch) const = 0;
  /// x of that micro-batch on that device. Throws Error{Data}.
  virtual Tensors inputs(int minibatch, const Share& share, at::Device device) = 0;
  virtual at::Tensor targets(int minibatch, const Share& share, at::Device device) = 0;
  /// Which samples of the training split those are; valid as long as this object. Empty: not known.
  virtual std::span<const std::int64_t> samples(int /*minibatch*/, const Share&) const {
    return {};
  }
};

}  // namespace pipewright
