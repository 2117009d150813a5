// SPDX-License-Identifier: Apache-2.0
// Hanayo (Liu et al., 2023, "Hanayo: Harnessing Wave-like Pipeline Parallelism"): stages lie on the
// p workers in W waves, forth and back, so that a micro-batch turns around on a worker without
// being sent. A worker that is free takes the oldest backward that is there, else the forward that
// is furthest. Backwards are whole and take as long as two forwards; the weights are GPipe's. With
// M = p micro-batches and one wave the bubble is 4(p−1) forwards of one stage.
#include <algorithm>
#include <climits>
#include <optional>

#include "core/base/as_size.h"
#include "core/base/wording.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr int kNotYet = INT_MAX;

/// Plays a mini-batch on one replica, slot by slot.
class WaveOrders {
 public:
  explicit WaveOrders(const PipelineShape& shape)
      : stages_(shape.stages),
        microbatches_(shape.microbatches),
        placement_(shape.placement),
        forwards_(as_size(stages_), 0),
        backwards_(as_size(stages_), 0),
        forward_ends_(as_size(stages_ * microbatches_), kNotYet),
        backward_ends_(forward_ends_),
        free_(as_size(shape.workers_per_replica()), 0) {}

  std::vector<std::vector<PassStep>> orders() {
    std::vector<std::vector<PassStep>> orders(free_.size());
    int left = 2 * stages_ * microbatches_;
    for (int slot = 0; left > 0; ++slot)
      for (std::size_t worker = 0; worker < free_.size(); ++worker) {
        if (free_[worker] > slot) continue;
        const auto step = next_of(static_cast<int>(worker), slot);
        if (!step) continue;
        orders[worker].push_back(*step);
        free_[worker] = slot + slots_of(step->kind);
        end_of(*step) = free_[worker];
        ++(step->kind == ActionKind::Forward ? forwards_ : backwards_)[as_size(step->stage)];
        --left;
      }
    return orders;
  }

 private:
  int& end_of(const PassStep& step) {
    auto& ends = step.kind == ActionKind::Forward ? forward_ends_ : backward_ends_;
    return ends[as_size(step.stage * microbatches_ + step.microbatch)];
  }

  /// Whether the input of a stage's next pass is there. A stage goes back once it has gone forward.
  bool ready(const PassStep& step, int slot) {
    if (step.microbatch == microbatches_) return false;
    if (step.kind == ActionKind::Forward)
      return step.stage == 0 || end_of({step.kind, step.stage - 1, step.microbatch}) <= slot;
    return step.stage == stages_ - 1
               ? end_of({ActionKind::Forward, step.stage, step.microbatch}) <= slot
               : end_of({step.kind, step.stage + 1, step.microbatch}) <= slot;
  }

  std::optional<PassStep> next_of(int worker, int slot) {
    std::optional<PassStep> backward, forward;
    for (int stage = stages_ - 1; stage >= 0; --stage) {
      if (placement_[as_size(stage)] != worker) continue;
      const PassStep back{ActionKind::Backward, stage, backwards_[as_size(stage)]};
      if (ready(back, slot) && (!backward || back.microbatch < backward->microbatch))
        backward = back;
      const PassStep on{ActionKind::Forward, stage, forwards_[as_size(stage)]};
      if (!forward && ready(on, slot)) forward = on;
    }
    return backward ? backward : forward;
  }

  int stages_, microbatches_;
  std::vector<int> placement_;
  std::vector<int> forwards_, backwards_;          ///< [stage]: how many are done
  std::vector<int> forward_ends_, backward_ends_;  ///< [stage · M + micro-batch], in slots
  std::vector<int> free_;                          ///< [worker]: end of its last pass
};

class Hanayo final : public Scheme {
 public:
  explicit Hanayo(Options& options)
      : waves_(static_cast<int>(
            options.integer("waves", 1,
                            "How often the stages go forth and back over the workers (W). There "
                            "are p = stages / 2W workers, rounded up, with 2W stages each; more "
                            "waves leave workers less idle and send more.",
                            {1, 2048}))) {}

  std::vector<int> placement(int stages) const override { return v_placement(stages, waves_); }

  Schedule schedule(const PipelineShape& shape) const override {
    const PipelineShape placed =
        with_placement(shape, v_placement(shape.stages, waves_),
                       concat("hanayo with ", counted(waves_, "wave"), " (scheme.waves)"));
    return schedule_of_workers(placed, WaveOrders(placed).orders());
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "hanayo: the order of passes that are ready, backwards before forwards, is unverified "
           "against the paper's program";
  }

 private:
  int waves_;
};

}  // namespace

PIPEWRIGHT_SCHEME(hanayo, Hanayo,
                  "Hanayo: stages in waves over the workers, a shorter bubble (Liu et al., 2023).")

}  // namespace pipewright
