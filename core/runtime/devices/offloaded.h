// SPDX-License-Identifier: Apache-2.0
/// Memory of a device that waits in the memory of its host. The tensors stay as they are, with
/// their places in autograd's graph; only the bytes behind their storages move. Nobody may read
/// them meanwhile: there is no memory.
#pragma once

#include <c10/core/Event.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/nn/layer.h"
#include "core/runtime/devices/new_storages.h"

namespace pipewright {

/// The activations of one forward. Used by the thread of its worker, whose current stream has made
/// them. On a CPU the bytes are copied within its memory.
class Offloaded {
 public:
  /// Moves the bytes of those storages that somebody still holds. On a device the copies are queued
  /// behind the kernels so far, and the memory is free for kernels that follow them.
  explicit Offloaded(const WeakStorages& storages);
  /// Queues the way back, into memory that is new.
  void fetch();
  /// Lets kernels that follow wait until all bytes are back.
  void await() const;

 private:
  struct Block {
    c10::Storage storage;
    at::Tensor host;  ///< its bytes
  };
  std::vector<Block> blocks_;
  std::optional<c10::Event> away_, back_;  ///< when the copies are done; none: they are
};

/// The activations of one worker's forwards that are offloaded, until the first pass that needs
/// them again. Used by the thread of that worker.
class OffloadedForwards {
 public:
  using Forward = std::pair<std::size_t, int>;  ///< its stage, counted over replicas; its number

  /// Runs a forward, and notes what it keeps. Returns copies of its outputs: these leave the stage,
  /// and what is kept moves.
  Tensors noting(Forward forward, at::DeviceType device, const std::function<Tensors()>& run);
  void offload(Forward forward);
  void fetch(Forward forward);
  /// Before a pass of that forward's micro-batch: lets it wait for a fetch, if there was one.
  void await(Forward forward);

 private:
  struct Kept {
    WeakStorages noted;
    std::optional<Offloaded> moved = {};
  };
  std::map<Forward, Kept> kept_;
};

}  // namespace pipewright
