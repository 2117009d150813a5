/// How what one stage makes reaches another stage, and how replicas add their gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "core/codecs/gradient_exchange.h"
#include "core/runtime/program.h"
#include "core/schedule/traffic.h"
#include "core/stage/stage.h"

namespace pipewright {

/// receive() blocks until the message is there; all calls throw Error{Interrupted} once stopped,
/// Error{Worker} when everybody waits for somebody.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(const Port& port, Tensors message) = 0;
  virtual Tensors receive(const Port& port, int worker) = 0;
  /// Sums the gradients of a stage over its replicas in order 0 … R−1; afterwards every replica
  /// has the sum before its next update. `exchange`: of the stage replica; null: the gradients are
  /// summed as they are. Returns the bytes of the replica's gradients, and of what went into sums
  /// meanwhile: where one thread goes through the rounds for all, that is more than the replica's
  /// own, and right over all replicas.
  virtual SummedBytes reduce(const Instruction& instruction, Stage& stage,
                             GradientExchange* exchange, int worker) = 0;
  /// A worker has performed its last action and calls no more.
  virtual void leave() {}
  /// Wakes everybody who waits; their calls and all later ones throw.
  virtual void abort() = 0;
};

/// For one thread that steps all workers in an order in which every input is ready.
std::unique_ptr<Transport> serial_transport(const Program& program);

/// For one thread per worker, each on its device. `stop` (may be null) is looked at while waiting.
/// `standstill`: how long all may wait for each other.
std::unique_ptr<Transport> queue_transport(const Program& program, std::vector<at::Device> devices,
                                           const std::atomic<bool>* stop,
                                           std::chrono::milliseconds standstill);

}  // namespace pipewright
