// SPDX-License-Identifier: Apache-2.0
// gradient_alignment: the gradient g that the scheme's backward of micro-batch 0 adds at a stage,
// against the gradient h that it would add if forward and backward had that stage's newest weights,
// with the same inputs and the same incoming gradient:
//   cosine = g·h / (|g| |h|),  norm_ratio = |g| / |h|.
// mismatch: the same against the gradient of a forward that had the backward's weights. Without a
// difference between forward and backward its cosine is 1. If passes read noisy weights, the newest
// weights are those without noise, and those of the backward have it.
// With global: true also of all stages together, in rows without a stage: g of all stages, divided
// by the weight of the micro-batch in its mini-batch, against the gradient h of the micro-batch's
// mean loss where every stage has the weights that were its newest at its own backward. These are
// the weights that the gradient is about to change; inputs and incoming gradients follow from them,
// too. Only a serial training sees all stages. In mixed precision h is computed in the wide format.
// If a stage learns from several losses, its gradient is that of the first. A stage keeps two
// gradients while the backward runs (one until the second half of a backward that is split), and
// computes one forward and one backward more; with global it also keeps a copy of its weights until
// the last stage's backward has ended, and the whole model runs once more.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/base/as_size.h"
#include "core/probes/probe.h"
#include "core/stage/stage_probe_access.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

bool has_parameters(Stage& stage) {
  return stage.weights().latest().numel() > 0;
}

/// The gradient of the whole model in a training of one thread, whose stages share this object. The
/// stages must outlive it.
class WholeGradient {
 public:
  explicit WholeGradient(int stages) : stages_(stages) {}

  /// A backward that adds to a stage's gradients is about to run: keeps a copy of the stage's
  /// newest weights.
  void begins(const Observer::Backward& about_to_run);
  /// It has added these, none at a stage without parameters. Once all stages have, finds cosine and
  /// norm_ratio of the whole model.
  void ended(const Instruction& pass, const StageProbe::Added& added, const Finding& found);
  void drained() { open_.clear(); }

 private:
  /// The facts known of a mini-batch.
  struct Open {
    std::vector<Stage*> stages;       ///< those whose backward has begun; others are null
    std::vector<at::Tensor> weights;  ///< [stage] newest at its backward
    std::vector<Gradients> added;     ///< [stage] divided by the micro-batch's weight
    std::set<int> ended;              ///< stages; of those without parameters each half ends
    Tensors inputs;                   ///< of the model
    PassTargets targets;              ///< of the loss
    Pass pass;
  };
  Gradients at_newest_weights(const Open& open) const;

  int stages_;
  std::map<int, Open> open_;  ///< [mini-batch of the schedule]
};

void WholeGradient::begins(const Observer::Backward& about_to_run) {
  const int stage = about_to_run.stage.index();
  Open& open = open_[about_to_run.instruction.action.minibatch];
  if (open.stages.empty()) {
    open.stages.resize(as_size(stages_));
    open.weights.resize(as_size(stages_));
    open.added.resize(as_size(stages_));
  }
  open.stages[as_size(stage)] = &about_to_run.stage;
  open.weights[as_size(stage)] = about_to_run.stage.weights().latest().clone();
  if (stage == stages_ - 1) open.targets = about_to_run.targets();
  if (stage > 0) return;
  open.inputs = StageProbeAccess(about_to_run.stage).inputs_of(about_to_run.id);
  open.pass = about_to_run.pass;
}

void WholeGradient::ended(const Instruction& pass, const StageProbe::Added& added,
                          const Finding& found) {
  const auto at = open_.find(pass.action.minibatch);
  if (at == open_.end()) return;
  Open& open = at->second;
  for (const at::Tensor& gradient : added.gradients)
    open.added[as_size(pass.action.stage)].push_back(
        gradient.defined() ? gradient / added.weighting.factor : gradient);
  open.ended.insert(pass.action.stage);
  if (std::ssize(open.ended) < stages_) return;
  Gradients scheme;
  for (Gradients& of_stage : open.added) std::ranges::move(of_stage, std::back_inserter(scheme));
  const GradientComparison compared = compare(scheme, at_newest_weights(open));
  const Finding of_model = found.of_whole_model();
  of_model("cosine", compared.cosine);
  of_model("norm_ratio", compared.norm_ratio);
  open_.erase(at);
}

Gradients WholeGradient::at_newest_weights(const Open& open) const {
  const at::AutoGradMode record(true);
  Tensors values = open.inputs;
  std::vector<at::Tensor> leaves;
  for (int k = 0; k < stages_; ++k) {
    StageProbeAccess stage(*open.stages[as_size(k)]);
    const std::vector<at::Tensor> own = stage.leaves_of(open.weights[as_size(k)]);
    values = stage.outputs_with(own, std::move(values), open.pass);
    leaves.insert(leaves.end(), own.begin(), own.end());
  }
  const at::Tensor loss = StageProbeAccess(*open.stages.back()).loss_of(values, open.targets);
  return torch::autograd::grad({loss}, leaves, {}, false, false, /*allow_unused=*/true);
}

/// Compares the gradient of the first loss of each mini-batch with that for other weights.
class BesideAtStage : public StageProbe {
 public:
  bool wants_gradients() const override { return true; }

  void backward(const Observer::Backward& about_to_run) override {
    const Action& action = about_to_run.instruction.action;
    const bool adds = about_to_run.request.learn || about_to_run.request.half_of;
    Stage& stage = about_to_run.stage;
    if (!adds || !has_parameters(stage) || action.minibatch == seen_) return;
    seen_ = action.minibatch;
    Stage::BackwardRequest request = about_to_run.request;
    const PassTargets targets = request.own_loss ? about_to_run.targets() : PassTargets();
    request.half_of.reset();
    request.scale = 1;  // that of a split backward is known only later
    running_.push_back(
        {.minibatch = action.minibatch,
         .loss = action.loss,
         .gradients = StageProbeAccess(stage).gradients_with(
             weights_for(about_to_run.instruction, stage), about_to_run.instruction.weights.key,
             about_to_run.id, std::move(request), about_to_run.pass, targets)});
  }

  void ended(const Instruction& pass, Stage&, const Added& added, const Finding& found) override {
    if (added.gradients.empty()) return;
    const auto other = std::ranges::find_if(running_, [&](const Other& each) {
      return each.minibatch == pass.action.minibatch && each.loss == pass.action.loss;
    });
    if (other == running_.end()) return;
    const GradientComparison compared = compare(added.gradients, other->gradients);
    found("cosine", compared.cosine);
    found("norm_ratio", compared.norm_ratio / std::abs(pass.action.scale));
    running_.erase(other);
  }

  void drained() override {
    seen_ = -1;
    running_.clear();
  }

 private:
  virtual StageProbeAccess::With weights_for(const Instruction& backward, Stage& stage) const = 0;

  struct Other {
    int minibatch = 0, loss = 0;
    Gradients gradients;
  };
  int seen_ = -1;
  std::vector<Other> running_;  ///< few: those whose second half is outstanding
};

class NewestAtStage final : public BesideAtStage {
 public:
  /// `whole`: null without global.
  explicit NewestAtStage(std::shared_ptr<WholeGradient> whole) : whole_(std::move(whole)) {}

  void backward(const Observer::Backward& about_to_run) override {
    const bool adds = about_to_run.request.learn || about_to_run.request.half_of;
    if (whole_ && adds) whole_->begins(about_to_run);
    BesideAtStage::backward(about_to_run);
  }
  void ended(const Instruction& pass, Stage& stage, const Added& added,
             const Finding& found) override {
    if (whole_ && (!added.gradients.empty() || !has_parameters(stage)))
      whole_->ended(pass, added, found);
    BesideAtStage::ended(pass, stage, added, found);
  }
  void drained() override {
    if (whole_) whole_->drained();
    BesideAtStage::drained();
  }

 private:
  StageProbeAccess::With weights_for(const Instruction&, Stage& stage) const override {
    return {.key = {stage.weights().latest_number(), 0, 0}};
  }

  std::shared_ptr<WholeGradient> whole_;
};

class OfBackwardAtStage final : public BesideAtStage {
  StageProbeAccess::With weights_for(const Instruction& backward, Stage&) const override {
    return {.key = backward.weights.key, .noise = true};
  }
};

class GradientAlignment final : public Probe {
 public:
  explicit GradientAlignment(Options& options)
      : Probe(options),
        global_(options.flag("global", false,
                             "Whether the gradient of all stages together is compared, too, with "
                             "that of the whole model where every stage has its newest weights, in "
                             "rows without a stage. Needs pipeline.execution: serial.")) {}
  std::string refusal(const ProbedTraining& training) const override {
    if (global_ && !training.serial)
      return "with global: true needs pipeline.execution: serial, because it looks at all stages "
             "together";
    if (global_ && training.local_losses)
      return concat("with global: true needs a scheme with one loss; ", training.scheme,
                    " has losses at several stages");
    return {};
  }
  std::vector<Quantity> quantities() const override {
    return {{"cosine",
             "of the angle between the stage's gradient and that of its newest weights, with the "
             "same inputs and incoming gradient; without a stage: of all stages' against the whole "
             "model's"},
            {"norm_ratio", "length of the first / length of the second"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override {
    return std::make_unique<NewestAtStage>(nullptr);
  }
  std::vector<std::unique_ptr<StageProbe>> at_all(
      const std::vector<ProbedStage>& stages) const override {
    const auto whole =
        global_ ? std::make_shared<WholeGradient>(static_cast<int>(stages.size())) : nullptr;
    std::vector<std::unique_ptr<StageProbe>> all;
    for (std::size_t i = 0; i < stages.size(); ++i)
      all.push_back(std::make_unique<NewestAtStage>(whole));
    return all;
  }

 private:
  bool global_;
};

class Mismatch final : public Probe {
 public:
  using Probe::Probe;
  std::vector<Quantity> quantities() const override {
    return {{"cosine",
             "of the angle between the stage's gradient and that of a forward with the backward's "
             "weights"},
            {"norm_ratio", "length of the first / length of the second"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override {
    return std::make_unique<OfBackwardAtStage>();
  }
};

}  // namespace

PIPEWRIGHT_PROBE(gradient_alignment, GradientAlignment,
                 "Angle and length of a stage's gradient against that of its newest weights.")
PIPEWRIGHT_PROBE(mismatch, Mismatch,
                 "Angle and length of a stage's gradient against that of a forward with the "
                 "backward's weights.")

}  // namespace pipewright
