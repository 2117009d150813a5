#include "core/stage/loss.h"

#include "core/stage/task.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// Softmax cross-entropy; smoothing ε mixes the target with the uniform distribution.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(Options& options)
      : label_smoothing_(options.number("label_smoothing", 0,
                                        "Weight ε of the uniform distribution in the target.",
                                        kFraction)),
        sums_tokens_(options.choice("tokens", {"mean", "sum"}, "mean",
                                    "Loss of a sample with several targets: the mean over them, or "
                                    "their sum (GNMT).") == "sum") {}

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const override {
    if (target.dim() == 1)
      return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, kNoTarget,
                                    label_smoothing_);
    const at::Tensor each =
        at::cross_entropy_loss(output.flatten(0, 1), target.flatten(), {}, at::Reduction::None,
                               kNoTarget, label_smoothing_);
    const at::Tensor sums = each.view(target.sizes()).sum(1);
    if (sums_tokens_) return sums.mean();
    return (sums / target.ne(kNoTarget).sum(1).clamp_min(1)).mean();
  }

 private:
  double label_smoothing_;
  bool sums_tokens_;
};

PIPEWRIGHT_LOSS(cross_entropy, CrossEntropy, "Softmax cross-entropy, mean over samples.")

}  // namespace
}  // namespace pipewright
