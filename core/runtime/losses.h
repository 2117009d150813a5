/// The losses and metrics of an execution: on their way to the host, checked, added up.
#pragma once

#include <deque>
#include <optional>
#include <span>

#include "core/runtime/devices/late_value.h"
#include "core/runtime/passes.h"

namespace pipewright {

/// Each worker calls with its own number. Losses are read at once on a CPU; on another device when
/// the worker comes to one of the next mini-batch, or to its end, so that the device always has
/// work queued meanwhile.
class Losses {
 public:
  /// All outlive it.
  Losses(const Program& program, const RunRequest& request, const Passes& passes);

  /// `updates`: of the stage, before the weights it was computed with. `sums`: of the metrics, one
  /// after another. Throws Error{NotFinite} for it or for earlier ones.
  void record(const Instruction& instruction, int worker, std::int64_t updates,
              const at::Tensor& loss, std::optional<LateValue> sums = {});
  /// Reads what is on its way. Throws Error{NotFinite}.
  void finish(int worker);

  /// What processes have a part of each: to be summed.
  std::span<double> all() { return sums_; }
  std::span<double> metric_sums() { return metric_sums_; }

  /// RunResult::losses and ::metrics.
  std::vector<std::vector<double>> means() const;
  std::vector<double> metrics() const;

 private:
  struct Reading {
    const Instruction* instruction;
    Share share;
    std::int64_t updates;
    LateValue loss;
    std::optional<LateValue> sums;
  };
  void read(int worker, int minibatch);
  void account(const Reading& reading, int worker);
  void add(const Action& action, double loss, const Share& share);
  [[noreturn]] void refuse(const Reading& reading, double loss, int worker) const;
  const at::Tensor& value_of(const LateValue& late) const;

  const PipelineShape& shape_;
  const RunRequest& request_;
  const Passes& passes_;
  int sites_;
  std::vector<int> site_of_;
  std::vector<double> sums_;  ///< [mini-batch][site][replica], each written by one thread only
  std::vector<std::deque<Reading>> readings_;  ///< per worker
  std::vector<double> metric_sums_;            ///< an evaluation has one last stage
};

}  // namespace pipewright
