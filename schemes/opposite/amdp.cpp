// SPDX-License-Identifier: Apache-2.0
// AMDP (Chen, Wu and Yu, 2026, arXiv 2605.29664, "Asynchronous Multi-Directional Pipeline
// Parallelism"): N/2 replicas lie on the same N workers, half of them in each direction, each
// beginning four workers after the one before it in its direction. A replica sends a pair of
// micro-batches through, and the next pair when the first one is back; pairs of the other replicas
// fill the time between. So no worker waits in the steady state. Nothing is flushed: forwards and
// backwards read the newest weights, and a stage is updated when all replicas have its last
// gradient of a mini-batch, so between the forward and the backward of a micro-batch is at most one
// update. The order of passes is that of the authors' program for 4 and 8 workers.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

std::vector<std::vector<int>> directions(int stages, int replicas) {
  if (stages % 4 != 0 || replicas % (stages / 2) != 0) return {};
  std::vector<std::vector<int>> placement;
  for (int replica = 0; replica < replicas; ++replica) {
    const int first_worker = replica / (stages / 2) * stages;
    const int within = replica % (stages / 2), start = within / 2 * 4;
    std::vector<int>& workers = placement.emplace_back();
    for (int stage = 0; stage < stages; ++stage) {
      const int worker = within % 2 == 0 ? start + stage : start + 3 - stage + stages;
      workers.push_back(first_worker + worker % stages);
    }
  }
  return placement;
}

PipelineShape with_directions(PipelineShape shape) {
  const auto refuse = [&](const auto&... words) {
    throw Error(ErrorKind::Experiment, concat(words...));
  };
  if (shape.stages % 4 != 0)
    refuse(
        "pipeline.stages is ", shape.stages,
        "; amdp needs a multiple of 4, as each of its replicas begins four workers after another");
  if (shape.replicas % (shape.stages / 2) != 0)
    refuse("pipeline.replicas is ", shape.replicas, "; amdp needs half as many as stages, ",
           shape.stages / 2, ", or a multiple of that, as they share their workers");
  if (!shape.placement.empty())
    refuse("pipeline.placement is ", list_text(shape.placement),
           "; amdp places its replicas itself, so leave it out");
  shape.replica_placement = directions(shape.stages, shape.replicas);
  return shape;
}

/// Plays the schedule slot by slot. Every pass takes one slot; a worker does what has come first,
/// of what came together a backward before a forward, then the earlier micro-batch, then the first
/// replica.
class FirstComeFirstServed {
 public:
  explicit FirstComeFirstServed(Schedule& schedule)
      : schedule_(schedule),
        shape_(schedule.shape),
        waiting_(as_size(shape_.workers())),
        updates_(as_size(shape_.stages), 0),
        gradients_(as_size(shape_.stages * shape_.minibatches), 0) {}

  void play() {
    for (int replica = 0; replica < shape_.replicas; ++replica) send_pair(replica, 0);
    int left = 2 * shape_.replicas * shape_.stages * passes();
    for (slot_ = 0; left > 0; ++slot_) {
      std::vector<Pass> done;
      for (int worker = 0; worker < shape_.workers(); ++worker)
        if (const int at = first_of(worker); at >= 0) {
          auto& waiting = waiting_[as_size(worker)];
          done.push_back(waiting[as_size(at)]);
          waiting.erase(waiting.begin() + at);
        }
      for (const Pass& pass : done) perform(pass);
      left -= static_cast<int>(done.size());
    }
  }

 private:
  struct Pass {
    ActionKind kind = ActionKind::Forward;
    int replica = 0, stage = 0;
    int number = 0;   ///< of the micro-batch within its replica's, over all mini-batches
    int arrival = 0;  ///< the slot from which on its input is there
  };

  int passes() const { return shape_.minibatches * shape_.microbatches; }

  void arrive(ActionKind kind, int replica, int stage, int number) {
    waiting_[as_size(shape_.worker_of(stage, replica))].push_back(
        {kind, replica, stage, number, slot_ + 1});
  }

  void send_pair(int replica, int first) {
    for (int number = first; number < std::min(first + 2, passes()); ++number)
      arrive(ActionKind::Forward, replica, 0, number);
  }

  /// A gradient is added to those of its own mini-batch only.
  bool ready(const Pass& pass) const {
    return pass.kind == ActionKind::Forward ||
           pass.number / shape_.microbatches == updates_[as_size(pass.stage)];
  }

  /// The place of the worker's next pass among those that wait; −1: none can go.
  int first_of(int worker) const {
    const auto& waiting = waiting_[as_size(worker)];
    const auto rank = [](const Pass& pass) {
      return std::tuple(pass.arrival, pass.kind == ActionKind::Forward, pass.number, pass.replica);
    };
    int best = -1;
    for (int i = 0; i < static_cast<int>(waiting.size()); ++i)
      if (ready(waiting[as_size(i)]) &&
          (best < 0 || rank(waiting[as_size(i)]) < rank(waiting[as_size(best)])))
        best = i;
    return best;
  }

  void perform(const Pass& pass) {
    append({.kind = pass.kind,
            .stage = pass.stage,
            .replica = pass.replica,
            .minibatch = pass.number / shape_.microbatches,
            .microbatch = pass.number % shape_.microbatches,
            .loss = pass.kind == ActionKind::Forward ? 0 : shape_.stages - 1});
    if (pass.kind == ActionKind::Forward) {
      if (pass.stage + 1 < shape_.stages)
        arrive(ActionKind::Forward, pass.replica, pass.stage + 1, pass.number);
      else
        arrive(ActionKind::Backward, pass.replica, pass.stage, pass.number);
      return;
    }
    if (pass.stage > 0)
      arrive(ActionKind::Backward, pass.replica, pass.stage - 1, pass.number);
    else if (pass.number % 2 == 0)
      send_pair(pass.replica, pass.number + 2);
    const int minibatch = pass.number / shape_.microbatches;
    int& gradients = gradients_[as_size(minibatch * shape_.stages + pass.stage)];
    if (++gradients == shape_.replicas * shape_.microbatches) update(pass.stage, minibatch);
  }

  /// All replicas have their gradients, at the end of this slot.
  void update(int stage, int minibatch) {
    ++updates_[as_size(stage)];
    for (const ActionKind kind : {ActionKind::Reduce, ActionKind::Update})
      for (int replica = 0; replica < shape_.replicas; ++replica)
        append({.kind = kind, .stage = stage, .replica = replica, .minibatch = minibatch});
  }

  void append(const Action& action) {
    schedule_.workers[as_size(shape_.worker_of(action.stage, action.replica))].push_back(action);
  }

  Schedule& schedule_;
  const PipelineShape& shape_;
  std::vector<std::vector<Pass>> waiting_;  ///< [worker]
  std::vector<int> updates_;                ///< [stage]
  std::vector<int> gradients_;  ///< [mini-batch · stages + stage]: how many are complete
  int slot_ = -1;
};

class Amdp final : public Scheme {
 public:
  explicit Amdp(Options&) {}

  std::vector<std::vector<int>> replica_placement(int stages, int replicas) const override {
    return directions(stages, replicas);
  }

  Schedule schedule(const PipelineShape& shape) const override {
    Schedule schedule = empty_schedule(with_directions(shape));
    FirstComeFirstServed(schedule).play();
    return schedule;
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "amdp: passes are in the order of the authors' program, which knows 4 and 8 workers; "
           "that program updates all stages of a worker at once, this scheme updates each as soon "
           "as its gradients are complete";
  }
};

}  // namespace

PIPEWRIGHT_SCHEME(amdp, Amdp,
                  "AMDP: N/2 replicas in both directions on the same workers, asynchronous (Chen, "
                  "Wu and Yu, 2026).")

}  // namespace pipewright
