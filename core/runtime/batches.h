// SPDX-License-Identifier: Apache-2.0
/// Interface that gives an execution its data: mini-batches by number, the same for every caller.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "core/nn/layer.h"

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

/// How the samples of a replica are cut into micro-batches. Even: slice_of(). TorchChunk: as
/// torch.chunk does, all of size ⌈n/parts⌉ but a smaller last one.
enum class MicrobatchSizes : std::uint8_t { Even, TorchChunk };

/// How many parts torch.chunk makes of n samples if it is asked for `parts`: maybe fewer.
inline std::int64_t torch_chunks(std::int64_t n, int parts) {
  const std::int64_t size = (n + parts - 1) / parts;
  return (n + size - 1) / size;
}

/// One part of n samples; with TorchChunk torch_chunks(n, parts) must be `parts`.
inline Slice microbatch_of(std::int64_t n, int parts, int part, MicrobatchSizes sizes) {
  if (sizes == MicrobatchSizes::Even) return slice_of(n, parts, part);
  const std::int64_t size = (n + parts - 1) / parts, begin = part * size;
  return {begin, n - begin < size ? n - begin : size};
}

/// Samples of a mini-batch that belong to one micro-batch of one replica.
struct Share {
  std::int64_t first_sample = 0;     ///< its first sample, counted within the whole mini-batch
  std::int64_t samples = 0;          ///< number of samples of this micro-batch
  std::int64_t replica_samples = 0;  ///< number of samples of its replica
  std::int64_t all_samples = 0;      ///< number of samples of the whole mini-batch
  int slice = 0, slices = 1;         ///< which part of the samples' sequences, and of how many
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
  /// Targets of the whole sequences of which that micro-batch has a part; undefined if it has all.
  /// With `of_minibatch` those of all samples of the mini-batch.
  at::Tensor whole_targets(int minibatch, Share share, at::Device device, bool of_minibatch) {
    if (share.slices == 1 && !of_minibatch) return {};
    if (of_minibatch) {
      share.first_sample = 0;
      share.samples = share.all_samples;
    }
    share.slice = 0;
    share.slices = 1;
    return targets(minibatch, share, device);
  }
  virtual Samples samples(int /*minibatch*/, const Share&) const { return {}; }
};

}  // namespace pipewright
