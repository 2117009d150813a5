// SPDX-License-Identifier: Apache-2.0
/// What an order of passes is looked for: the passes on every worker of a pipeline, what they take,
/// what a worker may hold, and how stale weights may be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/builders.h"
#include "core/schedule/schedule.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// The passes of a micro-batch at a stage. Where backwards are not split, Backward is the whole one
/// and there is no Weight.
enum class Part : std::uint8_t { Forward, Backward, Weight };
inline constexpr std::size_t kParts = 3;

/// One pass of an order. The n-th such pass of an order is that of micro-batch n: micro-batches are
/// alike, so an order in which one overtakes another is no faster.
struct Turn {
  int stage = 0;
  Part part = Part::Forward;
  bool operator==(const Turn&) const = default;
};

/// What carries messages, and how long those of a mini-batch keep it busy in any order.
struct Carrier {
  std::string name;
  double seconds = 0;
};

/// [worker] → its passes, in all mini-batches.
using Orders = std::vector<std::vector<Turn>>;

struct OrderTask {
  int microbatches = 1;  ///< of a mini-batch
  /// Mini-batches of an order. Of orders that repeat themselves the first is all that is looked
  /// for.
  int minibatches = 1;
  /// Updates that may come between a forward and the update that applies its gradient. 0: a worker
  /// begins a mini-batch when it has updated its stages with the one before.
  int staleness = 0;
  int workers = 1;
  bool split = true;                                ///< whether backwards are
  std::vector<int> worker_of;                       ///< [stage]
  std::vector<std::array<double, kParts>> seconds;  ///< [stage][part]
  std::vector<double> update;                       ///< [stage] → s of its update
  /// [stage] → s until the output of its forward is at the next stage, and the gradient of its
  /// backward at the one before; 0 on the same worker.
  std::vector<double> forward_delay, backward_delay;
  /// [stage] → s for which the same messages keep the slowest link or bus on their way busy.
  std::vector<double> forward_sent, backward_sent;
  std::vector<Carrier> carriers;
  /// [stage] → what a micro-batch takes from the beginning of its forward to the end of its last
  /// backward there; in the unit of `room`.
  std::vector<double> held;
  /// [worker] → what it may hold of micro-batches at once.
  std::vector<double> room;

  int stages() const { return static_cast<int>(worker_of.size()); }
  int passes() const { return microbatches * minibatches; }  ///< of a part of a stage, in an order
  double seconds_of(const Turn& turn) const {
    return seconds[static_cast<std::size_t>(turn.stage)][static_cast<std::size_t>(turn.part)];
  }
  /// The last part of a backward, after which the micro-batch is no longer held.
  Part last_part() const { return split ? Part::Weight : Part::Backward; }
};

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// By what part of themselves two sums of the same seconds or bytes may differ, and more.
inline constexpr double kSumRounding = 1e-9;

/// The task of a pipeline of one replica on that hardware, in which each live micro-batch of a
/// stage counts 1 and room is unlimited. Jitter is left out.
OrderTask order_task(const PipelineShape& shape, std::span<const StageCost> costs,
                     const Hardware& hardware, bool split);

/// A task of split backwards that is no slower, whichever of the two kinds each backward is: its
/// gradient comes as early as in either, and both halves together take no longer. The two are those
/// of one pipeline.
OrderTask least_task(const OrderTask& split, const OrderTask& whole);

/// Whether each pass happens once, after those that it needs on its worker, no worker holds more
/// than it may, and no weights are too stale.
bool fits(const OrderTask& task, const Orders& orders);
/// The same of the passes of one worker.
bool fits(const OrderTask& task, int worker, const std::vector<Turn>& turns);

/// The schedule that follows these orders, again and again where they are those of one mini-batch.
/// Stages are updated as soon as they have the last gradient of a mini-batch. Forwards compute with
/// the latest weights, backwards with those of their forward.
Schedule schedule_of(const OrderTask& task, const PipelineShape& shape, const Orders& orders);

/// The orders of the first mini-batch of a synchronous schedule of one replica, which may be one of
/// split or of whole backwards; {} if it is none, has recomputations or heads, or mini-batches that
/// differ.
Orders orders_of(const Schedule& schedule, bool split);

}  // namespace pipewright
