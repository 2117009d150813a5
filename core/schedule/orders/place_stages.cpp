// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/builders.h"
#include "core/schedule/pass_slots.h"

namespace pipewright {
namespace {

/// Merges the orders of stages that share a worker. In rounds, each worker takes the most urgent of
/// its stages' next actions whose input is there. Whether it is there is one byte per pass, which
/// is looked up once for each action, however often its worker asks.
class Merge {
 public:
  Merge(const PipelineShape& shape, std::vector<std::vector<Action>> orders)
      : shape_(shape),
        by_stage_(as_schedule(shape, std::move(orders))),
        slots_(by_stage_),
        made_(2 * slots_.forwards() + slots_.backwards(), false),
        turns_(by_stage_.workers.size()),
        stages_of_(as_size(shape.workers())) {
    for (int stage = 0; stage < static_cast<int>(turns_.size()); ++stage) {
      stages_of_[as_size(worker_of(stage))].push_back(stage);
      turns_[as_size(stage)] = turn(stage, 0);
    }
  }

  std::vector<std::vector<Action>> workers() {
    std::vector<std::vector<Action>> result = empty_orders();
    for (bool moved = true; moved;) {
      moved = !shape_.replica_placement.empty() && reduce_together(result);
      for (std::size_t worker = 0; worker < result.size(); ++worker) {
        const int stage = most_urgent(worker);
        if (stage < 0) continue;
        result[worker].push_back(*turns_[as_size(stage)].next);
        take(stage);
        moved = true;
      }
    }
    append_the_stuck(result);
    return result;
  }

 private:
  /// The next action of a stage.
  struct Turn {
    const Action* next = nullptr;          ///< null: the stage has none left
    const unsigned char* input = nullptr;  ///< whether its input is there; null: it needs none
    int urgency = 0;
    std::size_t position = 0;
  };

  /// The orders as a schedule in which every (replica, stage) has a worker of its own.
  static Schedule as_schedule(const PipelineShape& shape, std::vector<std::vector<Action>> orders) {
    Schedule schedule;
    schedule.shape = shape;
    schedule.shape.placement.clear();
    schedule.shape.replica_placement.clear();
    schedule.workers = std::move(orders);
    return schedule;
  }

  /// Here `stage` counts over all replicas: replica · stages + stage.
  int worker_of(int stage) const {
    return shape_.worker_of(stage % shape_.stages, stage / shape_.stages);
  }

  /// Room for the actions of each worker.
  std::vector<std::vector<Action>> empty_orders() const {
    std::vector<std::vector<Action>> orders(stages_of_.size());
    for (std::size_t worker = 0; worker < orders.size(); ++worker) {
      std::size_t actions = 0;
      for (const int stage : stages_of_[worker])
        actions += by_stage_.workers[as_size(stage)].size();
      orders[worker].reserve(actions);
    }
    return orders;
  }

  /// What is made, one byte each: forwards, heads, backwards (which end with the half that makes
  /// the input's gradient).
  std::size_t forward(const Action& like, int stage) const { return slots_.forward(like, stage); }
  std::size_t head(const Action& like) const {
    return slots_.forwards() + slots_.forward(like, like.stage);
  }
  std::size_t backward(const Action& like, int stage) const {
    const std::size_t slot = slots_.backward(like, stage);
    return slot == PassSlots::kNone ? slot : 2 * slots_.forwards() + slot;
  }

  /// What an action needs, as PassIndex::input_of() says; kNone if that is nothing or is never
  /// made.
  std::size_t input_of(const Action& action) const {
    switch (facts_of(action.kind).input) {
      case ActionInput::None: break;
      case ActionInput::ForwardBefore:
        return action.stage == 0 ? PassSlots::kNone : forward(action, action.stage - 1);
      case ActionInput::OwnForward: return forward(action, action.stage);
      case ActionInput::GradientBehind:
        if (action.loss != action.stage) return backward(action, action.stage + 1);
        return action.stage == shape_.stages - 1 ? forward(action, action.stage) : head(action);
      case ActionInput::FirstHalf: return backward(action, action.stage);
    }
    return PassSlots::kNone;
  }

  Turn turn(int stage, std::size_t position) const {
    const std::vector<Action>& order = by_stage_.workers[as_size(stage)];
    if (position == order.size()) return {};
    const Action& next = order[position];
    const std::size_t input = input_of(next);
    return {.next = &next,
            .input = input == PassSlots::kNone ? nullptr : &made_[input],
            .urgency = facts_of(next.kind).urgency,
            .position = position};
  }

  /// Where replicas share workers, takes every reduction that all replicas of its stage have
  /// reached, so that workers which share several stages reduce them in one order.
  bool reduce_together(std::vector<std::vector<Action>>& result) {
    bool moved = false;
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const auto at = [&](int replica) { return replica * shape_.stages + stage; };
      bool all = true;
      for (int replica = 0; replica < shape_.replicas; ++replica)
        all = all && waits_for_replicas(turns_[as_size(at(replica))]);
      for (int replica = 0; all && replica < shape_.replicas; ++replica) {
        result[as_size(worker_of(at(replica)))].push_back(*turns_[as_size(at(replica))].next);
        take(at(replica));
      }
      moved = moved || all;
    }
    return moved;
  }
  bool waits_for_replicas(const Turn& turn) const {
    return !shape_.replica_placement.empty() && turn.next != nullptr &&
           turn.next->kind == ActionKind::Reduce;
  }

  int most_urgent(std::size_t worker) const {
    int best = -1;
    for (const int stage : stages_of_[worker]) {
      const Turn& own = turns_[as_size(stage)];
      if (waits_for_replicas(own)) continue;
      if (own.next == nullptr || (own.input != nullptr && *own.input == 0)) continue;
      if (best < 0 || own.urgency < turns_[as_size(best)].urgency) best = stage;
    }
    return best;
  }

  /// Marks the pass as made, and goes on to the stage's next action.
  void take(int stage) {
    Turn& own = turns_[as_size(stage)];
    const Action& action = *own.next;
    if (action.kind == ActionKind::Forward)
      made_[forward(action, action.stage)] = 1;
    else if (action.kind == ActionKind::Head)
      made_[head(action)] = 1;
    else if (is_backward(action.kind))
      made_[backward(action, action.stage)] = 1;
    own = turn(stage, own.position + 1);
  }

  /// Appends the actions that can never start, so that prove() can say what is wrong with them.
  void append_the_stuck(std::vector<std::vector<Action>>& result) {
    for (int stage = 0; stage < static_cast<int>(turns_.size()); ++stage)
      for (; turns_[as_size(stage)].next != nullptr; take(stage))
        result[as_size(worker_of(stage))].push_back(*turns_[as_size(stage)].next);
  }

  const PipelineShape& shape_;
  Schedule by_stage_;
  PassSlots slots_;
  std::vector<unsigned char> made_;          ///< see forward(), head(), backward()
  std::vector<Turn> turns_;                  ///< per (replica, stage)
  std::vector<std::vector<int>> stages_of_;  ///< per worker
};

}  // namespace

Schedule schedule_of_stages(const PipelineShape& shape, std::vector<std::vector<Action>> orders) {
  PIPEWRIGHT_CHECK(orders.size() == as_size(shape.stages * shape.replicas),
                   "one order per stage and replica");
  Schedule schedule = empty_schedule(shape);
  if (shape.placement.empty() && shape.replica_placement.empty())
    schedule.workers = std::move(orders);
  else
    schedule.workers = Merge(shape, std::move(orders)).workers();
  return schedule;
}

}  // namespace pipewright
