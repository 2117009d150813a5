// SPDX-License-Identifier: Apache-2.0
/// Interface that carries messages between stages and sums gradients over replicas.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "core/codecs/gradient_exchange.h"
#include "core/runtime/envelope.h"
#include "core/runtime/program.h"
#include "core/schedule/traffic.h"
#include "core/stage/stage.h"

namespace pipewright {

/// receive() blocks until the message is there. Every call throws Error{Interrupted} once the run
/// is stopped, and Error{Worker} after a deadlock.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(const Port& port, Envelope message) = 0;
  /// `enclosed`: what the sender has put into the message besides its tensors.
  virtual Envelope receive(const Port& port, int worker, Enclosed enclosed) = 0;
  /// Sums the gradients of a stage over its replicas in order 0 … R−1; every replica has the sum
  /// before its next update. `exchange` belongs to the stage replica; null: the gradients are
  /// summed uncompressed. Returns the bytes of the replica's gradients and the bytes summed
  /// instead. In `serial` the replica that arrives last is charged for everybody's later rounds;
  /// only the total over replicas is meaningful.
  virtual SummedBytes reduce(const Instruction& instruction, Stage& stage,
                             GradientExchange* exchange, int worker) = 0;
  /// For gradient rules over the whole model: a stage gives its number for the mini-batch of an
  /// update, and later takes the sum over all stages of its replica. Between processes the sum is a
  /// collective call, so that every worker must have given all its stages' numbers of a mini-batch
  /// before it takes the first sum of that one, and takes them in the order of mini-batches.
  virtual void give_number(const Action& update, double number) = 0;
  virtual double sum_of_numbers(const Action& update, int worker) = 0;
  /// In `serial`: messages in flight become those that many rounds of the loop later.
  virtual void move_on(std::int64_t /*rounds*/) {}
  /// Called by a worker after its last action; it makes no further calls.
  virtual void worker_finished() {}
  /// Wakes all waiting workers; their calls and all later ones throw.
  virtual void abort() = 0;
};

/// A transport for one thread that steps all workers in an order in which every input is ready.
std::unique_ptr<Transport> serial_transport(const Program& program);

/// A transport for one thread per worker, each on its device. Waits poll `stop` (may be null).
/// `standstill` is the deadlock timeout: how long all workers may wait at the same time by the
/// clock `now`, which tests replace.
std::unique_ptr<Transport> queue_transport(
    const Program& program, std::vector<at::Device> devices, const std::atomic<bool>* stop,
    std::chrono::milliseconds standstill,
    std::chrono::steady_clock::time_point (*now)() = &std::chrono::steady_clock::now);

}  // namespace pipewright
