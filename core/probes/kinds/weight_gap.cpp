// SPDX-License-Identifier: Apache-2.0
// weight_gap: how far the weights that a mini-batch's gradient was computed with are from those it
// is applied to. With W_f and W_b the weights of the forward and the backward of micro-batch 0, W
// the latest version before the update and W' the one after it, over the P parameters of a stage:
//   forward = |W_f − W| / √P,  backward = |W_b − W| / √P,  update = |W' − W| / √P,
//   forward_relative = forward / update (1: as far as one update), backward_relative likewise.
// A stage keeps a copy of its weights for each of the two passes, and one during the update.
#include <optional>

#include "core/probes/measures.h"
#include "core/probes/probe.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class GapAtStage final : public StageProbe {
 public:
  void began(const Instruction& pass, Stage& stage) override {
    const ActionKind kind = pass.action.kind;
    const at::Tensor& weights = stage.weights().version(pass.weights.key);
    if (kind == ActionKind::Forward) forward_.push_back({pass.action.minibatch, weights.clone()});
    const bool backward = kind == ActionKind::Backward || kind == ActionKind::BackwardInput;
    if (backward && (backward_.empty() || backward_.back().minibatch != pass.action.minibatch))
      backward_.push_back({pass.action.minibatch, weights.clone()});
  }

  void updates(const Update& update, const Finding&) override {
    if (update.measured) before_ = update.stage.weights().latest().clone();
  }

  void updated(const Update& update, const Finding& found) override {
    if (!update.measured) return;
    const FlatLayout& layout = update.stage.layout();
    const double step = rms_between(update.stage.weights().latest(), before_, layout);
    found("update", step);
    const int last = update.instruction.action.minibatch;
    for (const auto& [name, kept] :
         {std::pair("forward", &forward_), std::pair("backward", &backward_)})
      report(name, *kept, last, layout, step, found);
    before_.reset();
  }

  void drained() override {
    forward_.clear();
    backward_.clear();
  }

 private:
  struct Kept {
    int minibatch = 0;
    at::Tensor weights;
  };

  /// Reports the first mini-batch that the update applies and drops all that it applies.
  void report(const char* name, std::vector<Kept>& kept, int last, const FlatLayout& layout,
              double step, const Finding& found) {
    if (kept.empty() || kept.front().minibatch > last) return;
    const double gap = rms_between(kept.front().weights, before_, layout);
    found(name, gap);
    if (step > 0) found(concat(name, "_relative"), gap / step);
    std::erase_if(kept, [&](const Kept& each) { return each.minibatch <= last; });
  }

  std::vector<Kept> forward_, backward_;
  at::Tensor before_;
};

class WeightGap final : public Probe {
 public:
  using Probe::Probe;
  std::string refusal(const ProbedTraining& training) const override {
    if (training.gradient_delay == 0) return {};
    return concat("knows of no gradient that a later update applies; perturb.gradient_delay is ",
                  training.gradient_delay, ", expected 0");
  }
  std::vector<Quantity> quantities() const override {
    return {{"forward, backward",
             "root mean square of the weights that the pass had minus those that its gradient is "
             "applied to"},
            {"update", "root mean square of the change that the update makes"},
            {"forward_relative, backward_relative",
             "the same divided by update: 1 = as far as one update"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override {
    return std::make_unique<GapAtStage>();
  }
};

}  // namespace

PIPEWRIGHT_PROBE(weight_gap, WeightGap,
                 "Distance of the weights of forward and backward from those that the gradient "
                 "changes; 1 relative = one update.")

}  // namespace pipewright
