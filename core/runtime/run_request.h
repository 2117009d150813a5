// SPDX-License-Identifier: Apache-2.0
/// The arguments of execute() and its result.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/codecs/edge_ends.h"
#include "core/codecs/gradient_exchange.h"
#include "core/nn/metric.h"
#include "core/runtime/action_log.h"
#include "core/runtime/batches.h"
#include "core/runtime/team.h"
#include "core/schedule/traffic.h"
#include "core/simulation/span.h"

namespace pipewright {

class GraphRecorder;
class Interludes;
class Observer;
struct Program;

enum class Execution : std::uint8_t { Serial, Threads, Mpi };

struct RunRequest {
  Batches& batches;
  /// Learning rate of the schedule's mini-batch; −1: of the one before the schedule, or any number
  /// if nothing has been trained before. Thread-safe.
  std::function<double(int minibatch)> lr;
  std::uint64_t seed = 1;
  int first_epoch = 0;
  int first_minibatch = 0;        ///< mini-batch of the first epoch at which the schedule begins
  int minibatches_per_epoch = 1;  ///< the schedule may span several epochs
  bool sum_gradients = false;     ///< sum gradients over micro-batches instead of averaging them
  Execution execution = Execution::Serial;
  int threads = 1;  ///< intra-op threads of each worker
  /// Deadlock timeout of `threads`: how long all workers may wait at the same time, at most 8 s.
  std::chrono::milliseconds timeout = std::chrono::seconds(8);
  /// Called after each mini-batch: in `mpi` by worker 0 after its update, otherwise by the thread
  /// that reads the last micro-batch's loss.
  std::function<void(int minibatch)> on_minibatch;
  /// Called with the loss of each mini-batch, the mean over its samples, by the thread that reads
  /// its last micro-batch's loss; not where replicas or the processes of `mpi` have parts of it.
  std::function<void(int minibatch, double loss)> on_loss = nullptr;
  /// Whether on_loss is called.
  static bool tells_losses(Execution execution, int replicas) {
    return execution != Execution::Mpi && replicas == 1;
  }
  /// Polled if set: once it is true, execute() throws Error{Interrupted}.
  const std::atomic<bool>* stop = nullptr;
  /// If set, filled with the span of every instruction, per worker.
  std::vector<std::vector<Span>>* trace = nullptr;
  /// With `threads`: each worker computes on a stream of its own. False: workers of a device share
  /// one.
  bool own_streams = true;
  std::vector<const Metric*> metrics = {};  ///< metrics of an evaluation
  Team* team = nullptr;      ///< with `mpi`: this process executes worker team->rank() of it
  ActionLog* log = nullptr;  ///< if set, records the actions of all workers
  /// Codecs at the ends of each stage replica's edges, indexed as the stages; null: no compression.
  const std::vector<std::unique_ptr<EdgeEnds>>* edges = nullptr;
  /// Gradient compression of each stage replica, indexed as the stages; null: gradients are summed
  /// uncompressed.
  const std::vector<std::unique_ptr<GradientExchange>>* exchanges = nullptr;
  /// In `serial`, if set: passes of a loop are recorded by it and launched again, as far as they
  /// can be. Needs one replica, no codecs, ties, slices, offloading, disturbances or observer.
  GraphRecorder* graphs = nullptr;
  Observer* observer = nullptr;      ///< if set, is told of passes, updates and messages
  Interludes* interludes = nullptr;  ///< if set, what happens in between
  /// The program whose execution is paused meanwhile; its stages stay as they are. Null: none.
  const Program* within = nullptr;
};

/// What became of RunRequest::graphs.
struct GraphsUsed {
  std::int64_t rounds = 0;  ///< that were launched
  std::int64_t period = 0;  ///< rounds until a graph is launched again; 0: none was recorded
  std::size_t graphs = 0;   ///< recorded last
  std::string refusal;      ///< why there are none, if that is known
};

struct RunResult {
  /// [mini-batch][site]: mean loss over the mini-batch's samples. Site 0 is the last stage's loss,
  /// then come the auxiliary losses in order of their stages.
  std::vector<std::vector<double>> losses;
  std::vector<double> metrics;       ///< values, in the order of RunRequest::metrics
  std::vector<EdgeTraffic> traffic;  ///< over edges between stages, and into sums over replicas
  GraphsUsed graphs = {};
};

}  // namespace pipewright
