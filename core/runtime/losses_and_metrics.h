// SPDX-License-Identifier: Apache-2.0
/// The losses and metrics of an execution: copied to the host, checked, and added up.
#pragma once

#include <deque>
#include <optional>
#include <span>

#include "core/runtime/devices/late_value.h"
#include "core/runtime/pass_samples.h"

namespace pipewright {

/// Each worker calls with its own number. A loss on a CPU is read at once. On another device it is
/// read when the worker records a loss of a later mini-batch, or at its end, so that the device's
/// queue never runs empty.
class LossesAndMetrics {
 public:
  /// All arguments must outlive it.
  LossesAndMetrics(const Program& program, const RunRequest& request, const PassSamples& passes);

  /// Records the loss of a pass. `updates`: how many updates of the stage its weights contain.
  /// `sums`: those of all metrics, concatenated. Throws Error{NotFinite} for this or an earlier
  /// loss.
  void record(const Instruction& instruction, int worker, std::int64_t updates,
              const at::Tensor& loss, std::optional<LateValue> sums = {});
  /// Reads the values of this worker that are still in flight. Throws Error{NotFinite}.
  void finish(int worker);

  /// The counts of this process; the totals are their sums over all processes.
  std::span<double> all() { return sums_; }
  std::span<double> metric_sums() { return metric_sums_; }

  /// The values of RunResult::losses and RunResult::metrics.
  std::vector<std::vector<double>> means() const;
  std::vector<double> metrics() const;

 private:
  struct Reading {
    Action action;
    WeightKey key;
    Share share;
    std::int64_t updates;
    LateValue loss;
    std::optional<LateValue> sums;
  };
  void read(int worker, int minibatch);
  void account(const Reading& reading, int worker);
  void add(const Action& action, double loss, const Share& share);
  void tell_loss(const Action& action);
  [[noreturn]] void refuse(const Reading& reading, double loss, int worker) const;
  const at::Tensor& value_of(const LateValue& late) const;

  const PipelineShape& shape_;
  const RunRequest& request_;
  const PassSamples& passes_;
  int sites_;
  std::vector<int> site_of_;
  std::vector<double> sums_;  ///< [mini-batch][site][replica]; each is written by one thread only
  std::vector<int> parts_;    ///< losses of micro-batches read, per mini-batch, for on_loss
  std::vector<std::deque<Reading>> readings_;  ///< values in flight, per worker
  std::vector<double> metric_sums_;            ///< one writer: an evaluation has one last stage
};

}  // namespace pipewright
