// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/slots.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

bool within(int value, int count) {
  return 0 <= value && value < count;
}

/// Whether an action's numbers are within the shape, and its loss is not before its stage, as
/// PassIndex requires.
bool fits(const Action& action, const PipelineShape& shape) {
  if (is_part_of_backward(action.kind) && action.loss < action.stage) return false;
  return within(action.stage, shape.stages) && within(action.replica, shape.replicas) &&
         within(action.minibatch, shape.minibatches) &&
         within(action.microbatch, shape.microbatches) && within(action.loss, shape.stages);
}

/// The index of the actions that fit. The others are replaced by updates, for which no action
/// waits.
std::optional<PassIndex> index_of(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  if (std::min({shape.stages, shape.replicas, shape.minibatches, shape.microbatches}) < 1)
    return {};
  Schedule known = schedule;
  for (auto& worker : known.workers)
    for (Action& action : worker)
      if (!fits(action, shape)) action = {.kind = ActionKind::Update};
  return PassIndex(known);
}

/// Steps every worker through its actions until none can move.
class SlotProgress {
 public:
  explicit SlotProgress(const Schedule& schedule)
      : schedule_(schedule),
        index_(index_of(schedule)),
        next_(schedule.workers.size(), 0),
        free_(schedule.workers.size(), 0),
        at_reduction_(schedule.workers.size(), false) {
    for (const auto& worker : schedule.workers)
      times_.start.emplace_back(worker.size(), kNeverStarts);
  }

  SlotTimes times() && {
    for (bool moved = index_.has_value(); moved;) {
      moved = false;
      for (std::size_t worker = 0; worker < next_.size(); ++worker)
        while (advance(worker)) moved = true;
    }
    return std::move(times_);
  }

 private:
  /// Starts the worker's next action if it can.
  bool advance(std::size_t worker) {
    if (next_[worker] == schedule_.workers[worker].size()) return false;
    const Action& action = schedule_.workers[worker][next_[worker]];
    if (!fits(action, schedule_.shape)) return false;
    if (action.kind == ActionKind::Reduce) return arrive_at_reduction(worker, action);
    const int input = input_end(action);
    const int beside = is_fused_pair(schedule_.workers[worker], next_[worker])
                           ? input_end(schedule_.workers[worker][next_[worker] + 1])
                           : 0;
    if (input == kNeverStarts || beside == kNeverStarts) return false;
    begin(worker, std::max({free_[worker], input, beside}));
    return true;
  }

  /// When the action's input is made, with the pair of which that is a half; kNeverStarts if it is
  /// not known to be.
  int input_end(const Action& action) const {
    if (!has_input(action)) return 0;
    if (!fits(action, schedule_.shape)) return kNeverStarts;
    const ActionPlace input = index_->input_of(action);
    if (input == kNowhere) return kNeverStarts;
    const auto [source, position] = std::pair{as_size(input.first), as_size(input.second)};
    const int start = times_.start[source][position];
    if (start == kNeverStarts) return kNeverStarts;
    const auto& actions = schedule_.workers[source];
    const int beside = is_fused_pair(actions, position) ? slots_of(actions[position + 1].kind) : 0;
    return start + slots_of(actions[position].kind) + beside;
  }

  /// A worker that reaches a Reduce waits until all replicas have.
  bool arrive_at_reduction(std::size_t worker, const Action& action) {
    if (at_reduction_[worker]) return false;
    at_reduction_[worker] = true;
    auto& waiting = waiting_[{action.stage, action.minibatch}];
    waiting.push_back(worker);
    if (waiting.size() < as_size(schedule_.shape.replicas)) return false;
    int latest = 0;
    for (const std::size_t each : waiting) latest = std::max(latest, free_[each]);
    for (const std::size_t each : waiting) {
      begin(each, latest);
      at_reduction_[each] = false;
    }
    waiting.clear();
    return true;
  }

  void begin(std::size_t worker, int slot) {
    const std::size_t position = next_[worker]++;
    times_.start[worker][position] = slot;
    free_[worker] = slot + slots_of(schedule_.workers[worker][position].kind);
    times_.makespan = std::max(times_.makespan, free_[worker]);
  }

  const Schedule& schedule_;
  std::optional<PassIndex> index_;
  std::vector<std::size_t> next_;   ///< per worker: actions started
  std::vector<int> free_;           ///< per worker: end of the last one
  std::vector<bool> at_reduction_;  ///< per worker: waits at a Reduce
  /// (stage, mini-batch) → the workers that wait at that Reduce.
  std::map<std::pair<int, int>, std::vector<std::size_t>> waiting_;
  SlotTimes times_;
};

}  // namespace

SlotTimes slot_times(const Schedule& schedule) {
  return SlotProgress(schedule).times();
}

}  // namespace pipewright
