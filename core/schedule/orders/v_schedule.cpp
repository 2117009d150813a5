// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "core/base/as_size.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr int kPeriod = 6;  ///< slots of a worker for a micro-batch: F, I and W of two stages
constexpr int kNotYet = INT_MAX;

/// How many more passes' activations a worker holds after a pass of this kind.
int change_of(ActionKind kind) {
  return kind == ActionKind::Forward ? 1 : kind == ActionKind::BackwardWeight ? -1 : 0;
}

/// The orders of p workers, of which worker w holds stages w and 2p−1−w. A table has a row of slots
/// for each worker. It is filled from the block; then passes move in it; then it is performed.
class BlockTable {
 public:
  BlockTable(std::vector<VBlock> blocks, int microbatches)
      : blocks_(std::move(blocks)),
        microbatches_(microbatches),
        rows_(blocks_.size()),
        slots_(as_size(3 * stages() * microbatches), kNotYet),
        first_steady_(blocks_[0][3]),
        last_steady_(blocks_[0][0] + kPeriod * (microbatches - 1)) {
    for (int worker = 0; worker < workers(); ++worker) {
      repeat_block(worker);
      fill_with_weight_halves(worker);
    }
    count_held();
  }

  /// Moves passes before and after the steady state into free slots before them.
  void move_to_free_slots() {
    std::size_t end = 0;
    for (const Row& row : rows_) end = std::max(end, row.size());
    for (int slot = 0; as_size(slot) < end; ++slot)
      for (int worker = 0; worker < workers(); ++worker)
        if (slot < first_steady_ || slot > last_steady_) move_earlier(worker, slot);
  }

  /// Each worker performs its passes in the order of its row, as early as it can. Weight-only
  /// halves after the steady state are performed where it would wait otherwise.
  std::vector<std::vector<PassStep>> performed() {
    std::vector<Turn> turns;
    for (const Row& row : rows_) turns.push_back(turn_of(row));
    const std::vector<int> planned = std::exchange(slots_, {});
    slots_.assign(planned.size(), kNotYet);
    std::vector<std::vector<PassStep>> orders(rows_.size());
    for (int slot = 0; std::ranges::any_of(turns, &Turn::left); ++slot)
      for (std::size_t worker = 0; worker < turns.size(); ++worker) {
        Turn& turn = turns[worker];
        const auto step = next_of(turn, slot);
        if (!step) continue;
        orders[worker].push_back(*step);
        turn.held += change_of(step->kind);
        slots_[index_of(*step)] = slot;
        const PassStep half{ActionKind::BackwardWeight, step->stage, step->microbatch};
        if (step->kind == ActionKind::BackwardInput && planned[index_of(half)] > last_steady_)
          turn.due.push_back(half);
      }
    return orders;
  }

 private:
  using Row = std::vector<std::optional<PassStep>>;

  /// The passes that a worker has still to perform.
  struct Turn {
    bool left() const { return !passes.empty() || !due.empty(); }

    std::deque<PassStep> passes;  ///< in their order
    std::deque<PassStep> due;     ///< weight-only halves that may be performed at any time
    int held = 0;
  };

  Turn turn_of(const Row& row) const {
    Turn turn;
    for (int slot = 0; as_size(slot) < row.size(); ++slot)
      if (const auto& step = row[as_size(slot)];
          step && (slot <= last_steady_ || step->kind != ActionKind::BackwardWeight))
        turn.passes.push_back(*step);
    return turn;
  }

  int workers() const { return static_cast<int>(blocks_.size()); }
  int stages() const { return 2 * workers(); }

  /// The place of a pass in tables with an element for each.
  std::size_t index_of(const PassStep& step) const {
    const int kind = step.kind == ActionKind::Forward         ? 0
                     : step.kind == ActionKind::BackwardInput ? 1
                                                              : 2;
    return as_size((kind * stages() + step.stage) * microbatches_ + step.microbatch);
  }
  int slot_of(const PassStep& step) const { return slots_[index_of(step)]; }

  /// The slot in which the input of a pass is made; −1 if it needs none.
  int input_slot(PassStep step) const {
    if (step.kind == ActionKind::BackwardWeight) {
      step.kind = ActionKind::BackwardInput;
    } else if (step.kind == ActionKind::Forward) {
      if (--step.stage < 0) return -1;
    } else if (++step.stage == stages()) {
      step = {ActionKind::Forward, stages() - 1, step.microbatch};
    }
    return slot_of(step);
  }

  /// The slot of the same pass of the micro-batch before; −1 if it is the first.
  int slot_before(PassStep step) const { return --step.microbatch < 0 ? -1 : slot_of(step); }

  void put(int worker, int slot, const PassStep& step) {
    Row& row = rows_[as_size(worker)];
    if (as_size(slot) >= row.size()) row.resize(as_size(slot) + 1);
    row[as_size(slot)] = step;
    slots_[index_of(step)] = slot;
  }

  void repeat_block(int worker) {
    const int first = worker, second = stages() - 1 - worker;
    const auto [forward, forward_back, input_back, input] = blocks_[as_size(worker)];
    for (int i = 0; i < microbatches_; ++i) {
      put(worker, forward + kPeriod * i, {ActionKind::Forward, first, i});
      put(worker, forward_back + kPeriod * i, {ActionKind::Forward, second, i});
      put(worker, input_back + kPeriod * i, {ActionKind::BackwardInput, second, i});
      put(worker, input + kPeriod * i, {ActionKind::BackwardInput, first, i});
    }
  }

  /// Puts weight-only halves into free slots, in the order of their first halves.
  void fill_with_weight_halves(int worker) {
    std::deque<PassStep> due;
    Row& row = rows_[as_size(worker)];
    for (int slot = 0; as_size(slot) < row.size() || !due.empty(); ++slot) {
      if (as_size(slot) < row.size() && row[as_size(slot)]) {
        const PassStep& step = *row[as_size(slot)];
        if (step.kind == ActionKind::BackwardInput)
          due.push_back({ActionKind::BackwardWeight, step.stage, step.microbatch});
      } else if (!due.empty()) {
        put(worker, slot, due.front());
        due.pop_front();
      }
    }
  }

  void count_held() {
    for (const Row& row : rows_) {
      int held = 0;
      std::vector<int>& after = held_.emplace_back();
      for (const auto& step : row) after.push_back(held += step ? change_of(step->kind) : 0);
      most_held_ = std::max(most_held_, std::ranges::max(after));
    }
  }

  /// Moves a pass to the first free slot in which its input is there, which is behind that of the
  /// micro-batch before, and which raises no worker's most activations.
  void move_earlier(int worker, int slot) {
    Row& row = rows_[as_size(worker)];
    if (as_size(slot) >= row.size() || !row[as_size(slot)]) return;
    const PassStep step = *row[as_size(slot)];
    const auto held = held_[as_size(worker)].begin();
    for (int to = std::max(input_slot(step), slot_before(step)) + 1; to < slot; ++to) {
      if (row[as_size(to)]) continue;
      const std::span between(held + to, held + slot);
      const int more = change_of(step.kind);
      if (std::ranges::max(between) + more > most_held_) continue;
      for (int& each : between) each += more;
      row[as_size(slot)].reset();
      return put(worker, to, step);
    }
  }

  /// Takes what a worker does in a slot; nothing if it waits.
  std::optional<PassStep> next_of(Turn& turn, int slot) const {
    std::deque<PassStep>* from = &turn.due;
    if (!turn.passes.empty()) {
      const PassStep& next = turn.passes.front();
      const bool room = next.kind != ActionKind::Forward || turn.held < most_held_;
      if (room && input_slot(next) < slot) from = &turn.passes;
    }
    if (from->empty()) return {};
    const PassStep step = from->front();
    from->pop_front();
    return step;
  }

  std::vector<VBlock> blocks_;  ///< [worker]
  int microbatches_;
  std::vector<Row> rows_;           ///< [worker][slot]
  std::vector<int> slots_;          ///< [index_of()]: the slot of each pass
  int first_steady_, last_steady_;  ///< from worker 0's first backward to its last forward
  /// [worker][slot]: passes whose activations the worker holds after the slot.
  std::vector<std::vector<int>> held_;
  int most_held_ = 0;
};

}  // namespace

Schedule v_schedule(const PipelineShape& shape, const VBlockRule& block,
                    const std::string& scheme) {
  const PipelineShape placed = with_placement(shape, v_placement(shape.stages), scheme);
  const int workers = placed.workers_per_replica();
  std::vector<VBlock> blocks;
  for (int worker = 0; worker < workers; ++worker) blocks.push_back(block(worker, workers));
  BlockTable table(std::move(blocks), placed.microbatches);
  table.move_to_free_slots();
  std::vector<std::vector<PassStep>> orders = table.performed();
  for (auto& steps : orders)
    std::erase_if(steps, [&](const PassStep& step) { return step.stage >= shape.stages; });
  return schedule_of_workers(placed, orders);
}

}  // namespace pipewright
