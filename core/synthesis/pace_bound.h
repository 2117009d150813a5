// SPDX-License-Identifier: Apache-2.0
/// A pace that no order of a task can beat.
#pragma once

#include <string>

#include "core/synthesis/order_task.h"

namespace pipewright {

struct PaceBound {
  double seconds = 0;  ///< per mini-batch
  std::string why;     ///< a sentence: "worker 0 computes so long for each mini-batch"
  /// Whether it holds only for schedules in which each worker ends a mini-batch before it begins
  /// the next. Where a worker has one stage, all synchronous schedules are such.
  bool in_turn = false;
};

/// How much longer than the bound that is, as a part of the bound; 0 where the two are equal but
/// for rounding.
double gap_of(double seconds, double bound);

/// The largest bound of all workers, links and buses. Room that is too small for a micro-batch
/// makes it infinite.
PaceBound pace_bound(const OrderTask& task);

/// The same of all schedules, also of those in which a worker begins a mini-batch before it has
/// ended the one before.
PaceBound pace_bound_of_any(const OrderTask& task);

}  // namespace pipewright
