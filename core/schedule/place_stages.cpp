// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/builders.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

/// Merges the orders of stages that share a worker. In rounds, each worker takes the most urgent of
/// its stages' next actions whose input is there.
class Merge {
 public:
  Merge(const PipelineShape& shape, const std::vector<std::vector<Action>>& orders)
      : shape_(shape),
        orders_(orders),
        one_worker_each_(by_stage(shape, orders)),
        index_(one_worker_each_),
        done_(orders.size(), 0),
        stages_of_(as_size(shape.workers())) {
    for (int stage = 0; stage < static_cast<int>(orders.size()); ++stage)
      stages_of_[as_size(worker_of(stage))].push_back(stage);
  }

  std::vector<std::vector<Action>> workers() {
    std::vector<std::vector<Action>> result(as_size(shape_.workers()));
    for (bool moved = true; moved;) {
      moved = false;
      for (int worker = 0; worker < shape_.workers(); ++worker) {
        const int stage = most_urgent(worker);
        if (stage < 0) continue;
        result[as_size(worker)].push_back(next(stage));
        ++done_[as_size(stage)];
        moved = true;
      }
    }
    append_the_stuck(result);
    return result;
  }

 private:
  /// The same orders, but every (replica, stage) has a worker of its own; for PassIndex.
  static Schedule by_stage(const PipelineShape& shape,
                           const std::vector<std::vector<Action>>& orders) {
    Schedule schedule;
    schedule.shape = shape;
    schedule.shape.placement.clear();
    schedule.workers = orders;
    for (const auto& order : orders)
      for (const Action& action : order)
        if (action.kind == ActionKind::Head) schedule.auxiliary.push_back(action.stage);
    return schedule;
  }

  /// Here `stage` counts over all replicas: replica · stages + stage.
  int worker_of(int stage) const {
    return shape_.worker_of(stage % shape_.stages, stage / shape_.stages);
  }
  const Action& next(int stage) const {
    return orders_[as_size(stage)][as_size(done_[as_size(stage)])];
  }
  bool finished(int stage) const {
    return as_size(done_[as_size(stage)]) == orders_[as_size(stage)].size();
  }

  int most_urgent(int worker) const {
    int best = -1;
    for (const int stage : stages_of_[as_size(worker)]) {
      if (finished(stage)) continue;
      const auto [source, position] = index_.input_of(next(stage));
      if (source >= 0 && done_[as_size(source)] <= position) continue;
      if (best < 0 || facts_of(next(stage).kind).urgency < facts_of(next(best).kind).urgency)
        best = stage;
    }
    return best;
  }

  /// Appends the actions that can never start, so that validate() can say what is wrong with them.
  void append_the_stuck(std::vector<std::vector<Action>>& result) {
    for (int stage = 0; stage < static_cast<int>(orders_.size()); ++stage)
      for (; !finished(stage); ++done_[as_size(stage)])
        result[as_size(worker_of(stage))].push_back(next(stage));
  }

  const PipelineShape& shape_;
  const std::vector<std::vector<Action>>& orders_;
  Schedule one_worker_each_;
  PassIndex index_;
  std::vector<int> done_;                    ///< per (replica, stage): actions taken
  std::vector<std::vector<int>> stages_of_;  ///< per worker
};

}  // namespace

Schedule schedule_of_stages(const PipelineShape& shape, std::vector<std::vector<Action>> orders) {
  PIPEWRIGHT_CHECK(orders.size() == as_size(shape.stages * shape.replicas),
                   "one order per stage and replica");
  Schedule schedule = empty_schedule(shape);
  if (shape.placement.empty())
    schedule.workers = std::move(orders);
  else
    schedule.workers = Merge(shape, orders).workers();
  return schedule;
}

}  // namespace pipewright
