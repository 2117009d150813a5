// SPDX-License-Identifier: Apache-2.0
/// A search for faster orders near given ones: simulated annealing.
#pragma once

#include <cstdint>
#include <functional>

#include "core/synthesis/order_clock.h"
#include "core/synthesis/order_task.h"

namespace pipewright {

struct TimedOrders {
  Orders orders;
  Pace pace;
};

struct ImprovementSettings {
  std::int64_t tries = 20000;  ///< changes that are tried
  std::uint64_t seed = 1;
  double enough = 0;           ///< s per mini-batch at which the search ends
  std::function<bool()> stop;  ///< asked now and then; empty: never
};

/// The fastest orders found from `start`, which must fit the task: at least as fast. Equal
/// arguments give equal results, unless it is stopped.
TimedOrders improved(const OrderTask& task, TimedOrders start, const ImprovementSettings& settings);

}  // namespace pipewright
