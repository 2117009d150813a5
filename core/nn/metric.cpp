// SPDX-License-Identifier: Apache-2.0
#include "core/nn/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/nn/task.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Rows of scores [rows, classes] and their targets [rows], of texts without ignored ones. A logit
/// is a row of two classes, which has the scores 0 and logit.
struct Rows {
  Rows(const at::Tensor& output, const at::Tensor& target) {
    const bool labels = output.sizes() == target.sizes();
    if (labels || (output.size(1) == 1 && target.dim() == 1)) {
      const at::Tensor logits = output.flatten();
      scores = at::stack({at::zeros_like(logits), logits}, 1);
      targets = (labels ? target : target.view({-1, 1}).expand({-1, output[0].numel()}))
                    .flatten()
                    .to(at::kLong);
      return;
    }
    scores = output.flatten(0, target.dim() - 1);
    targets = target.flatten();
    if (target.dim() == 1) return;
    const at::Tensor counted = targets.ne(kNoTarget);
    scores = scores.index({counted});
    targets = targets.index({counted});
  }
  /// The number of targets that are not ignored.
  at::Tensor counted() const { return targets.ne(kNoTarget).sum(); }
  at::Tensor scores, targets;
};

at::Tensor vector_of(const std::vector<at::Tensor>& scalars) {
  return at::stack(scalars).to(at::kDouble);
}

/// The ratio of sums = {right targets, all targets}.
double share(std::span<const double> sums) {
  return sums[1] > 0 ? sums[0] / sums[1] : kNoNumber;
}

class Accuracy final : public Metric {
 public:
  explicit Accuracy(Options&) {}
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    if (target.is_floating_point())  // every evaluation measures it; undefined without classes
      return at::zeros({2}, target.options().dtype(at::kDouble));
    const Rows rows(output, target);
    return vector_of({rows.scores.argmax(1).eq(rows.targets).sum(), rows.counted()});
  }
  double value(std::span<const double> sums) const override { return share(sums); }
};

class Top5 final : public Metric {
 public:
  explicit Top5(Options&) {}
  bool fits(Task task) const override { return task != Task::Regress && task != Task::Label; }
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const Rows rows(output, target);
    const std::int64_t few = std::min<std::int64_t>(5, rows.scores.size(1));
    const at::Tensor best = std::get<1>(rows.scores.topk(few, 1));
    return vector_of({best.eq(rows.targets.unsqueeze(1)).sum(), rows.counted()});
  }
  double value(std::span<const double> sums) const override { return share(sums); }
};

/// Matthews correlation of two classes: (tp·tn − fp·fn) / √((tp+fp)(tp+fn)(tn+fp)(tn+fn)), 0 where
/// the root is 0.
class Matthews final : public Metric {
 public:
  explicit Matthews(Options&) {}
  std::size_t size() const override { return 4; }
  std::int64_t most_classes() const override { return 2; }
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const Rows rows(output, target);
    const at::Tensor said = rows.scores.argmax(1).eq(1), is = rows.targets.eq(1);
    return vector_of(
        {(said & is).sum(), (said & ~is).sum(), (~said & is).sum(), (~said & ~is).sum()});
  }
  double value(std::span<const double> sums) const override {
    const double tp = sums[0], fp = sums[1], fn = sums[2], tn = sums[3];
    const double root = std::sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
    return root > 0 ? (tp * tn - fp * fn) / root : 0;
  }
};

/// Perplexity: e to the mean over all targets of −log p(target).
class Perplexity final : public Metric {
 public:
  explicit Perplexity(Options&) {}
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const Rows rows(output, target);
    return vector_of(
        {at::cross_entropy_loss(rows.scores, rows.targets, {}, at::Reduction::Sum).to(at::kDouble),
         rows.counted().to(at::kDouble)});
  }
  double value(std::span<const double> sums) const override {
    return sums[1] > 0 ? std::exp(sums[0] / sums[1]) : kNoNumber;
  }
};

/// Mean absolute error over all targets.
class MeanAbsolute final : public Metric {
 public:
  explicit MeanAbsolute(Options&) {}
  bool fits(Task task) const override { return task == Task::Regress; }
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const at::Tensor distance = (output.to(at::kDouble) - target.to(at::kDouble)).abs();
    return vector_of({distance.sum(), at::full_like(distance.sum(), distance.numel())});
  }
  double value(std::span<const double> sums) const override { return share(sums); }
};

PIPEWRIGHT_METRIC(accuracy, Accuracy,
                  "Fraction of targets whose output is the largest; with one logit for each, whose "
                  "logit has the right sign.")
PIPEWRIGHT_METRIC(top5, Top5, "Fraction of targets whose output is among the five largest.")
PIPEWRIGHT_METRIC(matthews, Matthews,
                  "Matthews correlation coefficient of two classes, or of labels, from -1 to 1.")
PIPEWRIGHT_METRIC(mae, MeanAbsolute, "Mean absolute error of real-valued targets.")
PIPEWRIGHT_METRIC(perplexity, Perplexity,
                  "Perplexity: e to the mean negative log-likelihood of the targets.")

}  // namespace

std::unique_ptr<Metric> make_metric(const std::string& name) {
  const auto* entry = Registry<Metric>::instance().find(name);
  if (entry == nullptr) return nullptr;
  Problems problems;
  Options options(nullptr, "metric", problems);
  return entry->make(options);
}

}  // namespace pipewright
