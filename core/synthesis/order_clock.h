// SPDX-License-Identifier: Apache-2.0
/// How long a mini-batch takes in the steady state of orders that repeat themselves.
#pragma once

#include <cstddef>
#include <vector>

#include "core/synthesis/order_task.h"

namespace pipewright {

/// The times that the clock finds.
struct Pace {
  /// s per mini-batch in the steady state; infinite if the orders wait for each other. No worker
  /// can be faster from its first pass to its last, and times exist in which none takes longer.
  double seconds = kUnlimited;
  /// The mean over workers of the time from the first pass to the last, each as early as it can be.
  double mean_span = kUnlimited;
};

/// Whether the pace is less or, where paces are equal, the spans are.
inline bool faster(const Pace& a, const Pace& b) {
  return a.seconds < b.seconds || (a.seconds == b.seconds && a.mean_span < b.mean_span);
}

/// Times orders of one task again and again. Transfers do not wait for each other. The task must
/// outlive it.
class OrderClock {
 public:
  explicit OrderClock(const OrderTask& task);
  /// Orders must fit the task.
  Pace pace(const Orders& orders);

 private:
  bool run(const Orders& orders);
  bool perform(const Turn& turn, std::vector<double>& free);
  double* row(int stage, Part part, int microbatch);
  double longest_cycle();

  const OrderTask& task_;
  std::size_t lanes_;
  /// [stage][forward or backward][micro-batch][lane] → when that pass ends at the earliest, if only
  /// the worker of the lane has begun, at time 0.
  std::vector<double> ends_;
  std::vector<std::vector<double>> free_;  ///< [worker][lane] → end of its last pass so far
  std::vector<std::array<int, kParts>> done_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<double>> walks_;  ///< of longest_cycle()
};

}  // namespace pipewright
