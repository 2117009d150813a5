/// What an execution is asked for, and what it answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/codecs/edge_ends.h"
#include "core/codecs/gradient_exchange.h"
#include "core/runtime/action_log.h"
#include "core/runtime/batches.h"
#include "core/runtime/processes/team.h"
#include "core/schedule/traffic.h"
#include "core/simulation/span.h"
#include "core/stage/metric.h"

namespace pipewright {

enum class Execution : std::uint8_t { Serial, Threads, Mpi };

struct RunRequest {
  Batches& batches;
  std::function<double(int minibatch)> lr;  ///< of the schedule's mini-batch; any thread
  std::uint64_t seed = 1;
  int first_epoch = 0;
  int first_minibatch = 0;        ///< of the first epoch, where the schedule begins
  int minibatches_per_epoch = 1;  ///< the schedule may go over several epochs
  bool sum_gradients = false;     ///< over micro-batches, instead of their mean
  Execution execution = Execution::Serial;
  int threads = 1;  ///< intra-op threads of each worker
  /// With `threads`: how long all may wait for each other, at most 8 s, until it is a deadlock.
  std::chrono::milliseconds timeout = std::chrono::seconds(8);
  /// A mini-batch is over: its last loss is known (any thread), with `mpi` worker 0 has updated.
  std::function<void(int minibatch)> on_minibatch;
  const std::atomic<bool>* stop = nullptr;          ///< becomes true: throw Error{Interrupted} soon
  std::vector<std::vector<Span>>* trace = nullptr;  ///< becomes when each instruction ran
  /// With `threads`, each worker its own stream of its device; else those of a device share one.
  bool own_streams = true;
  std::vector<const Metric*> metrics = {};  ///< of an evaluation
  Team* team = nullptr;      ///< with `mpi`: this process executes worker team->rank() of it
  ActionLog* log = nullptr;  ///< of all workers: told what they begin
  /// As the stages: the ends of their edges, where those have codecs.
  const std::vector<std::unique_ptr<EdgeEnds>>* edges = nullptr;
  /// As the stages: what they sum over replicas, where that is not the gradients as they are.
  const std::vector<std::unique_ptr<GradientExchange>>* exchanges = nullptr;
};

struct RunResult {
  /// [mini-batch][site]: mean over the mini-batch's samples; site 0 the last stage's, then the
  /// auxiliary ones in order.
  std::vector<std::vector<double>> losses;
  std::vector<double> metrics;       ///< values, as requested
  std::vector<EdgeTraffic> traffic;  ///< over all edges between stages, and into sums
};

}  // namespace pipewright
