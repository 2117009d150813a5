// SPDX-License-Identifier: Apache-2.0
// delay_alignment: whether a gradient still points where an earlier one did. With g_t the gradient
// of update t of a stage, before any gradient rule, and τ = `delay`: cosine = g_t·g_{t−τ} / (|g_t|
// |g_{t−τ}|), with t−τ the update of a mini-batch that is measured. By default τ is the forward
// delay that `pipewright stability` prints: updates between the version that the stage's forwards
// read, without predicted steps, and the one that their gradient is applied to. It is the age of
// what a gradient knows of the weights, also where a prediction or an extrapolation makes the best
// of it. A stage keeps one gradient from update t−τ to update t.
#include <deque>

#include "core/probes/measures.h"
#include "core/probes/probe.h"

namespace pipewright {
namespace {

class DelayAtStage final : public StageProbe {
 public:
  explicit DelayAtStage(int delay) : delay_(delay) {}

  void updates(const Update& update, const Finding& found) override {
    const int now = update.stage.weights().latest_number();
    Gradients gradients;
    const bool due = !kept_.empty() && kept_.front().update + delay_ <= now;
    if (due || update.measured) gradients = unruled_gradients(update.stage);
    if (due) {
      found("cosine", compare(gradients, kept_.front().gradients).cosine);
      kept_.pop_front();
    }
    if (update.measured) kept_.push_back({now, std::move(gradients)});
  }

  void drained() override { kept_.clear(); }

 private:
  struct Kept {
    int update = 0;
    Gradients gradients;
  };
  int delay_;
  std::deque<Kept> kept_;
};

class DelayAlignment final : public Probe {
 public:
  explicit DelayAlignment(Options& options)
      : Probe(options),
        delay_(static_cast<int>(options.integer(
            "delay", 0,
            "Updates between the two gradients; 0 = the stage's forward delay as `pipewright "
            "stability` prints it, at least 1: updates between the version that its forwards read, "
            "predicted steps not counted, and the one that their gradient is applied to.",
            {0, 1e6}))) {}
  std::vector<Quantity> quantities() const override {
    return {{"cosine",
             "of the angle between the gradient of an update, before gradient rules, and that of "
             "`delay` updates before"}};
  }
  bool needs_delays() const override { return delay_ == 0; }
  std::unique_ptr<StageProbe> at(const ProbedStage& stage) const override {
    return std::make_unique<DelayAtStage>(delay_ > 0 ? delay_ : std::max(1, stage.delay));
  }

 private:
  int delay_;
};

}  // namespace

PIPEWRIGHT_PROBE(delay_alignment, DelayAlignment,
                 "Angle between the gradient of an update and that of some updates before.")

}  // namespace pipewright
