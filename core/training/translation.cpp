// SPDX-License-Identifier: Apache-2.0
#include "core/training/translation.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Test samples sorted by length, so that little padding is needed.
std::vector<std::int64_t> by_length(const Plan& plan) {
  const Dataset& dataset = *plan.dataset;
  std::vector<std::int64_t> indices = plan.test;
  std::ranges::stable_sort(
      indices, {}, [&](std::int64_t index) { return dataset.length(plan.test_split, index); });
  return indices;
}

}  // namespace

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
