// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/perturbation.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr Range kUpdates{0, 1e6};
constexpr Range kRelativeSize{0, 100};

}  // namespace

Perturbation read_perturbation(Options& root) {
  Options o = root.section(
      "perturb", "Disturbances of the training, to see what each of them costs; 0 = none.");
  Perturbation perturbation;
  perturbation.gradient_delay = static_cast<int>(o.integer(
      "gradient_delay", 0,
      "Updates from a gradient to the update that applies it: each update of a stage applies the "
      "gradient of so many updates before, summed over micro-batches and replicas, at its own "
      "learning rate. The first updates change nothing, and the last gradients are never applied. "
      "Draining the pipeline forgets no gradient. It adds to the delay that the scheme has: with "
      "gpipe it is delayed_sgd, that many mini-batches later.",
      kUpdates));
  perturbation.weight_noise =
      o.number("weight_noise", 0,
               "Size σ of noise on the weights, relative to them: a forward and all backwards of "
               "its micro-batch read w·(1 + σn) for each weight w, with n from N(0, 1), drawn for "
               "each micro-batch. It is elementwise, so that it has σ times the length of every "
               "tensor, and needs no sum that depends on the cut or the execution; weights that "
               "are 0 stay 0. The gradient is applied to the weights without noise, as "
               "evaluations, predictions and checkpoints have them.",
               kRelativeSize);
  perturbation.stale_batch_norm = static_cast<int>(o.integer(
      "stale_batch_norm", 0,
      "Mini-batches by which the running statistics of batch norm lag behind in evaluations. At "
      "every stage these read the statistics from before the last so many mini-batches; while "
      "there are fewer, those that the training began with. The weights that they read are the "
      "newest. Training is not disturbed, and the newest statistics are saved.",
      kUpdates));
  o.finish();
  return perturbation;
}

void check_perturbation(const Experiment& experiment, const Value& document, Problems& problems) {
  const int lag = experiment.perturbation.stale_batch_norm;
  const bool has_statistics = std::ranges::any_of(
      experiment.layers, [](const LayerPtr& layer) { return !layer->buffers().empty(); });
  if (lag == 0 || has_statistics || experiment.layers.empty()) return;
  problems.add(
      place_in(document, "perturb.stale_batch_norm"),
      concat("perturb.stale_batch_norm is ", lag,
             ", but the model has no running statistics; expected 0, or a model with batch norm"));
}

void check_perturbed_length(const Experiment& experiment, std::int64_t minibatches) {
  const auto check = [&](const char* option, std::int64_t updates, const char* consequence) {
    if (minibatches == 0 || updates < minibatches) return;
    throw experiment_error(experiment.where(option), option, " is ", updates,
                           ", but the training has only ", counted(minibatches, "mini-batch"),
                           consequence, "; expected at most ", minibatches - 1,
                           ", or more train.epochs");
  };
  const Perturbation& perturbation = experiment.perturbation;
  check("perturb.gradient_delay", perturbation.gradient_delay, ", so no gradient would be applied");
  check("perturb.stale_batch_norm", perturbation.stale_batch_norm,
        ", so no evaluation would see statistics of any");
}

std::string perturbation_remark(const Perturbation& perturbation) {
  if (!perturbation.any()) return {};
  std::vector<std::string> parts;
  if (const int delay = perturbation.gradient_delay; delay > 0)
    parts.push_back(concat("each update applies the gradient of ", counted(delay, "update"),
                           " before, beyond the staleness of the scheme"));
  if (perturbation.weight_noise > 0)
    parts.push_back(
        concat("passes read weights with noise of relative size ", perturbation.weight_noise));
  if (const int lag = perturbation.stale_batch_norm; lag > 0)
    parts.push_back(concat("evaluations leave the last ", counted(lag, "mini-batch"),
                           " out of the running statistics"));
  return concat("the training is disturbed (perturb): ", join(parts, "; "));
}

}  // namespace pipewright
