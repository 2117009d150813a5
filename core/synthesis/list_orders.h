// SPDX-License-Identifier: Apache-2.0
/// Orders made pass by pass: whenever a worker is free it does what a rule says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/synthesis/order_task.h"

namespace pipewright {

/// How a worker chooses among its passes.
struct ListRule {
  enum class First : std::uint8_t {
    BackwardForward,  ///< backwards, then forwards, then weight halves
    BackwardWeight,   ///< backwards, then weight halves, then forwards
    ForwardBackward   ///< forwards, then backwards, then weight halves
  };
  First first = First::BackwardForward;
  /// The seconds for which a worker waits for a pass of higher rank, as a part of what the other
  /// takes that it could begin.
  double patience = 0;
  /// Micro-batches that worker w of p holds at most: at least 1, and live +
  /// live_per_worker·(p−1−w).
  double live = kUnlimited, live_per_worker = 0;
  double spacing = 0;  ///< s from a forward of the first stage to its next, at least
};

/// The orders that follow the rule; nullopt if workers wait for each other, for want of room.
std::optional<Orders> list_orders(const OrderTask& task, const ListRule& rule);

/// The rules that are worth a try for the task, in a fixed order; the more, the more changes of
/// orders are tried afterwards.
std::vector<ListRule> list_rules(const OrderTask& task, std::int64_t tries);

}  // namespace pipewright
