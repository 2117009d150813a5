/// A schedule in virtual time: what it would take on given hardware, in seconds and bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/schedule.h"
#include "core/simulation/hardware.h"
#include "core/simulation/network.h"
#include "core/simulation/span.h"

namespace pipewright {

struct SimulationOptions {
  bool memory = true;             ///< count bytes, too
  bool memory_over_time = false;  ///< keep every step of them
  double optimizer_state = 0;     ///< bytes an optimizer keeps per byte of parameters
};

/// Bytes of one worker at one moment.
struct MemoryUse {
  std::int64_t weights = 0;    ///< all versions alive, and buffers
  std::int64_t gradients = 0;  ///< from the first backward to the update
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  ///< from the forward to its micro-batch's last backward
  std::int64_t boundaries = 0;   ///< inputs kept for backwards, and messages not yet taken
  std::int64_t passing = 0;      ///< needed only while an action runs

  std::int64_t total() const {
    return weights + gradients + optimizer + activations + boundaries + passing;
  }
  bool operator==(const MemoryUse&) const = default;
};

struct MemoryStep {
  double time = 0;
  MemoryUse use;
};

struct WorkerReport {
  double computing = 0;      ///< s
  double communicating = 0;  ///< s in all-reduces, and in sends that block the device
  double idle = 0;           ///< s of the makespan that are neither
  MemoryUse peak;            ///< when the total is the largest
  double peak_at = 0;
  std::int64_t most_state = 0;     ///< of weights, gradients and optimizer together, at any time
  std::vector<MemoryStep> memory;  ///< with SimulationOptions::memory_over_time
};

struct LinkReport {
  int from = 0, to = 0;  ///< workers
  Traffic traffic;
};

struct Simulation {
  double makespan = 0;
  double bubble = 0;  ///< idle time of all workers, of all their time
  std::vector<WorkerReport> workers;
  std::vector<LinkReport> links;         ///< that carried something, by sender and receiver
  std::vector<Traffic> buses;            ///< parallel to Hardware::buses
  std::vector<std::vector<Span>> spans;  ///< parallel to Schedule::workers
  std::vector<double> minibatch_ends;    ///< when the last action of each mini-batch ended

  double utilisation(std::size_t worker) const;
  /// In the steady part: between the ends of the mini-batches a quarter and three quarters through.
  double seconds_per_minibatch() const;
};

/// Workers perform their actions in order, each as soon as its inputs are there. A message leaves
/// when it is made, or when its link has room (PipelineShape::link_capacity counts messages sent
/// and not yet taken). The action that names a predicted version first makes it, and takes that
/// much longer; keeping versions takes memory and no time. A Reduce starts when all replicas have
/// come to it, with their gradients encoded where they are compressed, and takes a ring all-reduce
/// of each sum. The schedule must pass validate(); `costs` has one entry per stage. Throws
/// Error{Experiment} when the hardware has fewer devices than the schedule has workers,
/// Error{Schedule} when an action can never start. Equal arguments give equal results.
Simulation simulate(const Schedule& schedule, std::span<const StageCost> costs,
                    const Hardware& hardware, const SimulationOptions& options = {});

}  // namespace pipewright
