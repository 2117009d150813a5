#include "core/stage/loss.h"

#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// Softmax cross-entropy; smoothing ε mixes the target with the uniform distribution.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(Options& options)
      : label_smoothing_(options.number("label_smoothing", 0,
                                        "Weight ε of the uniform distribution in the target.",
                                        kFraction)) {}

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const override {
    return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, -100, label_smoothing_);
  }

 private:
  double label_smoothing_;
};

}  // namespace

PIPEWRIGHT_LOSS(cross_entropy, CrossEntropy, "Softmax cross-entropy, mean over samples.")

at::Tensor count_correct(const at::Tensor& output, const at::Tensor& target) {
  return output.argmax(1).eq(target).sum();
}

}  // namespace pipewright
