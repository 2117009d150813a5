// SPDX-License-Identifier: Apache-2.0
// Error feedback (Zmushko et al., 2026, arXiv 2606.30634): an update is corrected by how much it
// differs from the one before, as if the gradients of the next one were known already.
//   W ← W − u − c (u − u_before)
// u is the whole update that the optimizer makes at the newest weights, with its learning rate and
// its weight decay, and u_before was that of the update before, without its correction. The first
// update of a stage is ordinary; a parameter without gradient has u = 0; an update that is skipped
// is none. Predictions begin at corrected weights, and extrapolate the optimizer's own steps,
// without their corrections.
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class UpdateCorrection final : public GradientRule {
 public:
  explicit UpdateCorrection(Options& options)
      : coefficient_(options.number("coefficient", 1, "Strength c of the correction; 0 = none.",
                                    kNotNegative)) {}

  std::vector<std::string> slot_names() const override {
    if (coefficient_ != 0) return {"update"};
    return {};
  }
  bool follows_steps() const override { return coefficient_ != 0; }
  bool corrects_steps() const override { return coefficient_ != 0; }

  std::string remark() const override {
    return "The formula of error_feedback is a third party's reading of arXiv 2606.30634 "
           "(RamTorch's documentation); it has not been compared with the paper's text.";
  }

  void stepped(const WeightStep& step) const override {
    const at::Tensor update = step.before - step.after;
    at::Tensor last = step.slots[0];
    if (step.updates > 0) step.after.sub_(update - last, coefficient_);
    last.copy_(update);
  }

 private:
  double coefficient_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(error_feedback, UpdateCorrection,
                         "Error feedback; corrects an update by how it differs from the last one.")

}  // namespace pipewright
