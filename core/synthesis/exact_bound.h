// SPDX-License-Identifier: Apache-2.0
/// A pace that no order can beat, found by looking at all orders of a small task.
#pragma once

#include <cstdint>
#include <functional>

#include "core/synthesis/pace_bound.h"

namespace pipewright {

struct ExactSettings {
  double below = kUnlimited;            ///< s per mini-batch of known orders: more is not asked
  std::int64_t most_steps = 1'000'000;  ///< passes that are appended to beginnings of orders
  std::function<bool()> stop;           ///< asked now and then; empty: never
};

/// The least time of a worker from its first pass to its last, over all orders, if the stages
/// before it take no time; of the worker for which it is longest. {} if `most_steps` do not suffice
/// for any worker, or workers have several stages, or mini-batches overlap. Equal arguments give
/// equal results, unless it is stopped.
PaceBound exact_bound(const OrderTask& task, const ExactSettings& settings);

}  // namespace pipewright
