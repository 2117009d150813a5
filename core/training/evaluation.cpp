// SPDX-License-Identifier: Apache-2.0
#include "core/training/evaluation.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "core/training/gathered.h"

namespace pipewright {
namespace {

/// A loss over tokens as a metric: its mean over all targets of the evaluation, whatever the
/// mini-batches.
class MeanOverTargets final : public Metric {
 public:
  explicit MeanOverTargets(const Loss& loss) : loss_(loss) {}
  at::Tensor sums(const at::Tensor& output, const at::Tensor& target) const override {
    const at::Tensor targets = target.ne(kNoTarget).sum().to(at::kDouble);
    return at::stack({loss_(output, target).to(at::kDouble) * targets, targets});
  }
  double value(std::span<const double> sums) const override { return sums[0] / sums[1]; }

 private:
  const Loss& loss_;
};

/// Test samples sorted by length, so that little padding is needed.
std::vector<std::int64_t> by_length(const Plan& plan) {
  const Dataset& dataset = *plan.dataset;
  std::vector<std::int64_t> indices = plan.test;
  std::ranges::stable_sort(
      indices, {}, [&](std::int64_t index) { return dataset.length(plan.test_split, index); });
  return indices;
}

/// BLEU of the test samples, computed by process 0 and sent to all.
double bleu(const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
            const RunRequest& request) {
  const TensorFile weights = gathered_weights(plan, *request.team, stages);
  double score = request.team->first() ? translation_bleu(plan, weights, request.stop) : 0;
  request.team->sum({&score, 1});
  return score;
}

}  // namespace

void evaluate(const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
              const std::function<RunRequest(Batches&)>& request, EpochRow& row) {
  if (plan.test.empty()) return;
  const Experiment& e = *plan.experiment;
  Loader loader = plan.evaluation_loader();
  RunRequest evaluation = request(loader);
  evaluation.lr = [](int) { return 0.0; };
  evaluation.first_epoch = row.epoch;
  evaluation.minibatches_per_epoch = loader.minibatches();
  for (const auto& metric : e.metrics)
    if (metric) evaluation.metrics.push_back(metric.get());
  const MeanOverTargets over_targets(*e.loss);
  if (e.loss->over_minibatch()) evaluation.metrics.push_back(&over_targets);
  const RunResult result = execute(plan.evaluation, stages, evaluation);
  std::vector<double> losses;
  for (const std::vector<double>& of_minibatch : result.losses) losses.push_back(of_minibatch[0]);
  row.test_loss = e.loss->over_minibatch()
                      ? result.metrics.back()
                      : mean_loss(losses, {plan.test, e.loader.batch_size, false});
  row.test_accuracy = result.metrics.front();
  row.metrics.clear();
  auto measured = result.metrics.begin() + 1;
  for (auto metric = e.metrics.begin() + 1; metric != e.metrics.end(); ++metric)
    row.metrics.push_back(*metric ? *measured++ : bleu(plan, stages, evaluation));
}

double mean_loss(std::span<const double> losses, const EpochOrder& order) {
  double sum = 0, samples = 0;
  for (std::size_t m = 0; m < losses.size(); ++m) {
    const auto size = static_cast<double>(order.size_of(static_cast<int>(m)));
    sum += losses[m] * size;
    samples += size;
  }
  return sum / samples;
}

double translation_bleu(const Plan& plan, const TensorFile& weights,
                        const std::atomic<bool>* stop) {
  const Experiment& e = *plan.experiment;
  const Dataset& dataset = *plan.dataset;
  at::set_num_threads(e.pipeline.threads);
  const Translator translator(e.layers, e.model->encoder_layers(), weights, plan.devices.front());
  const std::vector<std::int64_t> indices = by_length(plan);
  std::vector<std::string> translations, references;
  const auto batch_size = static_cast<std::size_t>(e.translation.batch_size);
  for (std::size_t first = 0; first < indices.size(); first += batch_size) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed))
      throw Error(ErrorKind::Interrupted, "stopped by a signal");
    const auto some =
        std::span(indices).subspan(first, std::min(batch_size, indices.size() - first));
    const Batch batch = dataset.batch(plan.test_split, some, nullptr);
    for (const auto& tokens : translator.translate(batch.x[0], e.translation.search))
      translations.push_back(dataset.text(tokens));
    for (const std::int64_t index : some)
      references.push_back(dataset.reference(plan.test_split, index));
  }
  return corpus_bleu(translations, references, e.translation.bleu);
}

}  // namespace pipewright
