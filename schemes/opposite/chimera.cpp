// SPDX-License-Identifier: Apache-2.0
// Chimera (Li and Hoefler, 2021, "Chimera: Efficiently Training Large-Scale Neural Networks with
// Bidirectional Pipelines"): two replicas lie on the same D workers in opposite directions, each
// worker with stage k of one and stage D−1−k of the other, and each trains half of a mini-batch. So
// one fills the idle time of the other: where passes are equally long and a replica has a multiple
// of D/2 micro-batches, a worker idles for D−2 of them, and not for the 2(D−1) of 1F1B. A stage has
// at most D/2 micro-batches of its replica in flight, as in 1F1B with that many. The weights are
// GPipe's, of both replicas the same.
#include <algorithm>
#include <climits>
#include <optional>
#include <tuple>

#include "core/base/as_size.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr int kNotDone = INT_MAX;

/// Plays a mini-batch on the workers of one pair of replicas, slot by slot. Every pass takes one
/// slot. A worker that is free takes a backward before a forward, then the earlier micro-batch,
/// then the later stage.
class OppositeOrders {
 public:
  explicit OppositeOrders(const PipelineShape& shape)
      : stages_(shape.stages),
        microbatches_(shape.microbatches),
        forwards_(as_size(2 * stages_), 0),
        backwards_(forwards_),
        forward_slots_(as_size(2 * stages_ * microbatches_), kNotDone),
        backward_slots_(forward_slots_) {}

  std::vector<std::vector<PassStep>> orders() {
    std::vector<std::vector<PassStep>> orders(as_size(stages_));
    int left = 2 * 2 * stages_ * microbatches_;
    for (int slot = 0; left > 0; ++slot)
      for (int worker = 0; worker < stages_; ++worker) {
        const auto step = next_of(worker, slot);
        if (!step) continue;
        orders[as_size(worker)].push_back(*step);
        slot_of(*step) = slot;
        ++done(*step);
        --left;
      }
    return orders;
  }

 private:
  std::size_t place_of(int replica, int stage) const { return as_size(replica * stages_ + stage); }

  /// How many of the stage's passes of that kind are done.
  int& done(const PassStep& step) {
    auto& counts = step.kind == ActionKind::Forward ? forwards_ : backwards_;
    return counts[place_of(step.replica, step.stage)];
  }
  int& slot_of(const PassStep& step) {
    auto& slots = step.kind == ActionKind::Forward ? forward_slots_ : backward_slots_;
    return slots[place_of(step.replica, step.stage) * as_size(microbatches_) +
                 as_size(step.microbatch)];
  }

  bool ready(const PassStep& step, int slot) {
    if (step.microbatch == microbatches_) return false;
    PassStep input = step;
    if (step.kind == ActionKind::Forward) {
      const int in_flight = step.microbatch - backwards_[place_of(step.replica, step.stage)];
      if (in_flight >= stages_ / 2) return false;
      if (--input.stage < 0) return true;
    } else if (++input.stage == stages_) {
      input = {ActionKind::Forward, step.stage, step.microbatch, step.replica};
    }
    return slot_of(input) < slot;
  }

  std::optional<PassStep> next_of(int worker, int slot) {
    const auto rank = [](const PassStep& step) {
      return std::tuple(step.kind == ActionKind::Forward, step.microbatch, -step.stage);
    };
    std::optional<PassStep> best;
    for (const int replica : {0, 1})
      for (const ActionKind kind : {ActionKind::Backward, ActionKind::Forward}) {
        PassStep step{kind, replica == 0 ? worker : stages_ - 1 - worker, 0, replica};
        step.microbatch = done(step);
        if (ready(step, slot) && (!best || rank(step) < rank(*best))) best = step;
      }
    return best;
  }

  int stages_, microbatches_;
  std::vector<int> forwards_, backwards_;            ///< [place_of()]: how many are done
  std::vector<int> forward_slots_, backward_slots_;  ///< [place_of()][micro-batch]
};

class Chimera final : public Scheme {
 public:
  explicit Chimera(Options&) {}

  std::vector<std::vector<int>> replica_placement(int stages, int replicas) const override {
    return opposite_placement(stages, replicas);
  }

  Schedule schedule(const PipelineShape& shape) const override {
    const PipelineShape placed = with_opposite_placement(shape, "chimera");
    return schedule_of_workers(placed, OppositeOrders(placed).orders());
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "chimera: the order of passes is unverified against the authors' program; it has the "
           "bubble of their paper where passes are equally long";
  }
};

}  // namespace

PIPEWRIGHT_SCHEME(chimera, Chimera,
                  "Chimera: two replicas in opposite directions on the same workers (Li and "
                  "Hoefler, 2021).")

}  // namespace pipewright
