// SPDX-License-Identifier: Apache-2.0
/// Simulates a schedule in virtual time: what it would take on given hardware, in seconds and
/// bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"
#include "core/simulation/host_copies.h"
#include "core/simulation/network.h"
#include "core/simulation/span.h"

namespace pipewright {

struct SimulationOptions {
  bool memory = true;             ///< whether memory is counted
  bool memory_over_time = false;  ///< whether every step of memory is kept
  bool transfers = false;         ///< whether every message is kept
  double optimizer_state = 0;     ///< bytes that the optimizer keeps per byte of parameters
  /// [stage] bytes that it keeps besides; empty: none.
  std::vector<std::int64_t> optimizer_tables = {};
  std::int64_t fixed = 0;  ///< bytes that each worker holds for all of its stages together
};

/// Bytes of one worker at one moment.
struct MemoryUse {
  /// All versions alive, buffers, borrowed weights, and SimulationOptions::fixed.
  std::int64_t weights = 0;
  std::int64_t gradients = 0;  ///< from the first backward to the update
  std::int64_t optimizer = 0;
  /// From the forward to its micro-batch's last backward, but for the time on the host
  /// (host_copies.h).
  std::int64_t activations = 0;
  std::int64_t boundaries = 0;  ///< inputs kept for backwards, and messages not yet taken
  std::int64_t passing = 0;     ///< needed only while an action runs

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
  MemoryUse peak;            ///< memory when its total is the largest
  double peak_at = 0;
  HostCopies host;
  std::int64_t most_state = 0;     ///< peak of weights, gradients and optimizer together
  std::vector<MemoryStep> memory;  ///< filled if SimulationOptions::memory_over_time
};

struct LinkReport {
  int from = 0, to = 0;  ///< workers
  Traffic traffic;
  std::vector<SentMessage> transfers = {};  ///< filled if SimulationOptions::transfers
};

struct Simulation {
  double makespan = 0;
  double bubble = 0;  ///< idle time of all workers as a fraction of their time
  std::vector<WorkerReport> workers;
  std::vector<LinkReport> links;         ///< those that carried something, by sender, receiver
  std::vector<Traffic> buses;            ///< parallel to Hardware::buses
  std::vector<std::vector<Span>> spans;  ///< parallel to Schedule::workers
  std::vector<double> minibatch_ends;    ///< when the last action of each mini-batch ended

  double utilisation(std::size_t worker) const;
  /// Seconds per mini-batch in the steady state: between the ends of the mini-batches a quarter and
  /// three quarters through.
  double seconds_per_minibatch() const;
};

/// Throws Error{Experiment} if the hardware has fewer devices than workers.
void check_devices(const Hardware& hardware, std::size_t workers);

/// Simulates the schedule. Workers perform their actions in order, each as soon as its inputs are
/// there. A message leaves when it is made, or when its link has room (PipelineShape::link_capacity
/// counts messages sent and not yet taken). The first action that uses a prediction also makes it,
/// and takes that much longer, unless the update directly before it makes it, as in the executor,
/// where the costs say what that takes. An update that keeps the old version takes `new_version`
/// longer; holding versions takes memory and no time. A Reduce starts when all
/// replicas have reached it and encoded their gradients where they are compressed; it takes a ring
/// all-reduce of each sum. Copies to the host and back go on beside the worker (host_copies.h).
/// `costs` has one entry per stage. Throws Error{Experiment} when the hardware has fewer devices
/// than the schedule has workers or its times are too large for any number, or does not say how
/// fast its devices copy to their host where the schedule does that, Error{Schedule} when an action
/// can never start. Equal arguments give equal results.
Simulation simulate(const ProvedSchedule& proved, std::span<const StageCost> costs,
                    const Hardware& hardware, const SimulationOptions& options = {});

/// A remark on messages between hosts over links that the hardware does not limit, which take no
/// time; "" if there are none. Its devices must be laid_out().
std::string unlimited_links_remark(const Hardware& hardware, const Simulation& simulation);

}  // namespace pipewright
