// SPDX-License-Identifier: Apache-2.0
/// The fastest orders that are found for a task, and what no orders can beat.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/synthesis/order_clock.h"
#include "core/synthesis/order_task.h"
#include "core/synthesis/pace_bound.h"

namespace pipewright {

struct NamedOrders {
  std::string name;
  Orders orders;
};

struct SynthesisSettings {
  std::int64_t tries = 1000000;  ///< changes of orders that are tried, all together
  /// Passes appended to beginnings of orders for a bound of all of them.
  std::int64_t exact_steps = 2000000;
  std::uint64_t seed = 1;
  std::function<bool()> stop;  ///< asked now and then whether time is up; empty: never
};

struct Synthesis {
  Orders orders;
  Pace pace;
  std::string from;  ///< what they were made from: the name of a candidate, or "list"
  PaceBound bound;   ///< of all orders of the task

  /// How much longer they take than the bound, as a part of that; 0 if they are proved to be the
  /// fastest.
  double gap() const;
};

/// Starts from `candidates`, of which those that do not fit the task are left out, and from lists
/// made by rules, and changes the fastest. Equal arguments give equal results, unless it is
/// stopped. Each worker must have room for a micro-batch at all of its stages; the task has one
/// mini-batch.
Synthesis synthesize(const OrderTask& task, const std::vector<NamedOrders>& candidates,
                     const SynthesisSettings& settings = {});

}  // namespace pipewright
