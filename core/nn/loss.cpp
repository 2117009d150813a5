// SPDX-License-Identifier: Apache-2.0
#include "core/nn/loss.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/task.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// The shape of one sample, as "2×8×8".
std::string sample_shape_text(const at::Tensor& output) {
  return shape_text(output.sizes().slice(1).vec());
}

/// Softmax cross-entropy; label smoothing ε mixes the target with the uniform distribution.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(Options& options)
      : label_smoothing_(options.number(
            "label_smoothing", 0,
            "Label smoothing: the weight ε of the uniform distribution in the target.", kFraction)),
        sums_tokens_(
            options.choice(
                "tokens", {"mean", "sum"}, "mean",
                "Loss of a sample with several targets: their mean, or their sum, as in GNMT.") ==
            "sum"),
        over_targets_(
            options.choice(
                "average", {"samples", "tokens"}, "samples",
                "What the loss of a mini-batch is a mean over: its samples, whatever number of "
                "targets each has, or all targets that are not left out (-100), as in PyTorch and "
                "Hugging Face; e^loss is then the perplexity.") == "tokens") {
    if (over_targets_ && sums_tokens_)
      options.problem("average",
                      "is tokens, which needs tokens: mean; the sum has no mean over them");
  }

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const override {
    if (output.dim() != target.dim() + 1)
      throw Error(
          ErrorKind::Experiment,
          concat("the loss cross_entropy needs a score for each class, but an output of the model "
                 "has the shape ",
                 sample_shape_text(output), "; for maps set loss: {name: binary_cross_entropy}"));
    if (output.size(-1) == 1)
      throw Error(
          ErrorKind::Experiment,
          "the loss cross_entropy chooses among two classes or more, but an output of the "
          "model has one number, whose loss is always 0; for one logit of two classes set loss: "
          "{name: binary_cross_entropy}");
    if (target.dim() == 1 && !over_targets_)
      return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, kNoTarget,
                                    label_smoothing_);
    return of_part(output, target, target);
  }

  at::Tensor of_part(const at::Tensor& output, const at::Tensor& target,
                     const at::Tensor& whole) const override {
    const at::Tensor each =
        at::cross_entropy_loss(output.flatten(0, target.dim() - 1), target.flatten(), {},
                               at::Reduction::None, kNoTarget, label_smoothing_);
    if (over_targets_) {
      const double parts = static_cast<double>(whole.size(0)) / static_cast<double>(target.size(0));
      return each.sum() * parts / whole.ne(kNoTarget).sum().clamp_min(1);
    }
    const at::Tensor sums = each.view(target.sizes()).sum(1);
    if (sums_tokens_) return sums.mean();
    return (sums / whole.ne(kNoTarget).sum(1).clamp_min(1)).mean();
  }

  bool over_minibatch() const override { return over_targets_; }

 private:
  double label_smoothing_;
  bool sums_tokens_, over_targets_;
};

/// −y log σ(z) − (1 − y) log(1 − σ(z)) for logits z, averaged over all logits.
class BinaryCrossEntropy final : public Loss {
 public:
  explicit BinaryCrossEntropy(Options&) {}

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const override {
    at::Tensor y = target.to(output.scalar_type());
    if (output.sizes() != target.sizes()) {
      if (output.size(1) != 1 || target.dim() != 1) refuse(output, target);
      std::vector<std::int64_t> shape(static_cast<std::size_t>(output.dim()), 1);
      shape[0] = output.size(0);
      y = y.view(shape).expand_as(output);
    }
    constexpr int kOperators = 6;  // of LibTorch's loss
    if (output.is_meta())
      return made_on_meta({output}, at::empty({}, output.options()), {output, y}, kOperators);
    return at::binary_cross_entropy_with_logits(output, y);
  }

  Task compares_with() const override { return Task::Label; }
  bool fits(Task task) const override { return task == Task::Classify || task == Task::Label; }

 private:
  [[noreturn]] static void refuse(const at::Tensor& output, const at::Tensor& target) {
    const bool one = target.dim() == 1;
    throw Error(ErrorKind::Experiment,
                concat("the loss binary_cross_entropy needs one number for ",
                       one ? "a sample, or for each pixel of a map" : "each label",
                       ", but an output of the model has the shape ", sample_shape_text(output),
                       one ? "; expected a model of one output, or loss: {name: cross_entropy}, "
                             "which takes an output for each class"
                           : concat(", its labels ", sample_shape_text(target))));
  }
};

/// The loss of models that compute that of each sample themselves (Task::Minimize).
class OutputLoss final : public Loss {
 public:
  explicit OutputLoss(Options&) {}

  at::Tensor operator()(const at::Tensor& output, const at::Tensor&) const override {
    if (output.dim() != 2 || output.size(1) != 1)
      throw Error(ErrorKind::Experiment,
                  concat("the loss output needs one number for a sample, its loss, but an output "
                         "of the model has the shape ",
                         sample_shape_text(output), "; set loss: {name: cross_entropy}"));
    return output.mean();
  }
  bool fits(Task task) const override { return task == Task::Minimize; }
};

/// The base of losses that compare numbers with real-valued targets, [n, k] both.
class DifferenceLoss : public Loss {
 public:
  Task compares_with() const final { return Task::Regress; }
  bool fits(Task task) const final { return task == Task::Regress; }

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const final {
    if (output.sizes() != target.sizes())
      throw Error(ErrorKind::Experiment,
                  concat("the losses mse and l1 compare as many numbers of a sample as it has "
                         "targets, but an output of the model has the shape ",
                         sample_shape_text(output), ", its targets ", sample_shape_text(target)));
    return values(output - target.to(output.scalar_type())).mean();
  }

 protected:
  /// The loss of each difference.
  virtual at::Tensor values(const at::Tensor& difference) const = 0;
};

class MeanSquaredError final : public DifferenceLoss {
 public:
  explicit MeanSquaredError(Options&) {}

 private:
  at::Tensor values(const at::Tensor& difference) const override { return difference.square(); }
};

class MeanAbsoluteError final : public DifferenceLoss {
 public:
  explicit MeanAbsoluteError(Options&) {}

 private:
  at::Tensor values(const at::Tensor& difference) const override { return difference.abs(); }
};

PIPEWRIGHT_LOSS(cross_entropy, CrossEntropy,
                "Softmax cross-entropy, averaged over samples or over tokens.")
PIPEWRIGHT_LOSS(
    binary_cross_entropy, BinaryCrossEntropy,
    "Binary cross-entropy of one logit per sample, label or pixel of a map; targets are 0 or 1.")
PIPEWRIGHT_LOSS(mse, MeanSquaredError,
                "Mean squared error of real-valued targets, averaged over targets and samples.")
PIPEWRIGHT_LOSS(l1, MeanAbsoluteError,
                "Mean absolute error of real-valued targets, averaged over targets and samples.")
PIPEWRIGHT_LOSS(output, OutputLoss,
                "The model's output is the loss itself, averaged over samples; the default of the "
                "model quadratic.")

}  // namespace

at::Tensor Loss::of_part(const at::Tensor& output, const at::Tensor& target,
                         const at::Tensor& whole) const {
  const double share = static_cast<double>(target.size(1)) / static_cast<double>(whole.size(1));
  return (*this)(output, target) * share;
}

}  // namespace pipewright
