// SPDX-License-Identifier: Apache-2.0
#include "core/training/assembly.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/measuring/boundaries.h"
#include "core/measuring/made_up_batch.h"
#include "core/nn/skips.h"
#include "core/schedule/versions.h"
#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

EpochOrder order_of(const Plan& plan, int epoch) {
  const Experiment& e = *plan.experiment;
  if (!e.loader.reshuffle) epoch = 0;
  EpochOrder order{epoch_permutation(plan.train, e.loader.shuffle, e.train.seed, epoch),
                   e.loader.batch_size, e.loader.drop_last};
  if (e.loader.bucket > 0)
    order.indices = bucketed(std::move(order.indices), plan.lengths, e.loader.batch_size,
                             e.loader.bucket, e.train.seed, epoch);
  return order;
}

/// Decay of the drift rule that a stage's passes name, even those that need no prediction; none
/// without such a rule.
std::optional<double> drift_decay(const Schedule& schedule, int stage) {
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) {
      const PredictionRule& rule = schedule.rules[static_cast<std::size_t>(action.weights.rule)];
      if (action.stage == stage && rule.kind == PredictionRule::Kind::Drift) return rule.decay;
    }
  return {};
}

/// Creates a stage. Names it in the error if memory runs out.
std::unique_ptr<Stage> made_stage(StageParts parts, std::uint64_t seed, const Team& team) {
  const std::string where = concat("stage ", parts.index);
  try {
    return std::make_unique<Stage>(std::move(parts), seed);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const auto machine =
        machine_error(error, team.size() > 1 ? ErrorKind::Worker : ErrorKind::Data);
    if (!machine) throw;
    throw Error(machine->kind(), machine->message(), where);
  }
}

/// The largest inputs that the plan's loaders give, without memory. Evaluation images keep the size
/// that they have in the data set.
Tensors largest_inputs(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  const auto meta = at::TensorOptions(e.train.precision.values).device(at::kMeta);
  Tensors inputs = made_up_batch(*e.model, e.loader.batch_size, meta).x;
  if (!e.model->named_inputs().empty()) return inputs;  // whose shapes are fixed
  // A target text may be as long as the longest source.
  if (e.model->vocabulary() > 0) return Tensors(inputs.size(), inputs[0]);
  if (e.model->flattens() || plan.test.empty()) return inputs;
  const Batch one = plan.dataset->batch(plan.test_split, std::span(plan.test).first(1), nullptr);
  std::vector<std::int64_t> sizes = inputs[0].sizes().vec();
  if (one.x.empty() || one.x[0].dim() != inputs[0].dim()) return inputs;
  for (std::size_t i = 1; i < sizes.size(); ++i)
    sizes[i] = std::max(sizes[i], one.x[0].size(static_cast<std::int64_t>(i)));
  return {at::empty(sizes, meta)};
}

std::int64_t most_values(const Tensors& tensors) {
  std::int64_t most = 0;
  for (const at::Tensor& tensor : tensors) most = std::max(most, tensor.numel());
  return most;
}

}  // namespace

Loader Plan::training_loader(int first_epoch, int count, int first_minibatch) const {
  const Experiment& e = *experiment;
  return Loader({.dataset = dataset.get(),
                 .split = Split::Train,
                 .precision = e.train.precision.values,
                 .channels_last = *e.layout.channels_last,
                 .augment = true,
                 .seed = e.train.seed,
                 .first_epoch = first_epoch,
                 .first_minibatch = first_minibatch,
                 .replicas = e.pipeline.replicas,
                 .microbatches = e.pipeline.microbatches,
                 .slices = e.pipeline.slices,
                 .microbatch_sizes = e.pipeline.microbatch_sizes,
                 .keep = 2 * e.pipeline.stages + 2,
                 .prefetch = e.loader.prefetch,
                 .threads = e.pipeline.threads,
                 .input_shape = e.model->input_shape()},
                count,
                [this, first_epoch](int epoch) { return order_of(*this, first_epoch + epoch); });
}

Loader Plan::evaluation_loader() const {
  const Experiment& e = *experiment;
  // Evaluation images keep the data set's size, which may not be that of training (`eval_size`).
  const auto shape = e.model->flattens() ? e.model->input_shape() : std::vector<std::int64_t>();
  return Loader({.dataset = dataset.get(),
                 .split = test_split,
                 .precision = e.train.precision.values,
                 .channels_last = *e.layout.channels_last,
                 .keep = 4 * e.pipeline.stages + 2,
                 .prefetch = e.loader.prefetch,
                 .threads = e.pipeline.threads,
                 .input_shape = shape},
                std::vector<EpochOrder>{{test, e.loader.batch_size, false}});
}

std::vector<std::unique_ptr<Stage>> Plan::stages(const Team& team) const {
  check_weights(*this);
  const Experiment& e = *experiment;
  const auto layers = experiment->stage_layers();
  const auto copies = leaving_copies(e.layers, e.layout.balance);
  const Schedule& schedule = training.schedule;
  const Predictions predictions = predictions_of(schedule);
  std::vector<std::unique_ptr<Stage>> all;
  for (int replica = 0; replica < e.pipeline.replicas; ++replica)
    for (int stage = 0; stage < e.pipeline.stages; ++stage) {
      const int worker = schedule.shape.worker_of(stage, replica);
      if (!team.holds(worker)) {
        all.emplace_back();
        continue;
      }
      StageParts parts{.index = stage,
                       .last = stage == e.pipeline.stages - 1,
                       .layers = layers[static_cast<std::size_t>(stage)],
                       .head = head_of(stage),
                       .copies = copies[static_cast<std::size_t>(stage)],
                       .options = at::TensorOptions(e.train.precision.weights)
                                      .device(devices[static_cast<std::size_t>(worker)]),
                       .narrow = e.train.precision.narrow(),
                       .channels_last = *e.layout.channels_last,
                       .optimizer = &e.optimizer_of(stage),
                       .loss = e.loss.get(),
                       .predicts = predictions.any,
                       .keep_gradient = predictions.by_lookahead,
                       .drift_decay = drift_decay(schedule, stage),
                       .earlier = schedule.earlier_of(stage),
                       .running_statistics = e.pipeline.batch_norm,
                       .perturbation = e.perturbation.of_replica(replica),
                       .gradient_rules = e.gradient_rules};
      all.push_back(made_stage(std::move(parts), e.train.seed, team));
    }
  if (e.weights.path.empty()) return all;
  NamedTensors state;
  for (const auto& stage : all)
    if (stage) std::ranges::copy(stage->named_state(), std::back_inserter(state));
  load_weights(e.weights, state);
  return all;
}

std::vector<std::unique_ptr<EdgeEnds>> Plan::edges(const Team& team) const {
  const PipelineOptions& p = experiment->pipeline;
  std::vector<std::unique_ptr<EdgeEnds>> all;
  if (p.compression.empty()) return all;
  const EdgeValues most = most_values(*this);
  for (int replica = 0; replica < p.replicas; ++replica)
    for (int stage = 0; stage < p.stages; ++stage) {
      const bool held = team.holds(training.schedule.shape.worker_of(stage, replica));
      all.push_back(held ? std::make_unique<EdgeEnds>(p.compression, stage, most) : nullptr);
    }
  return all;
}

std::vector<std::unique_ptr<GradientExchange>> Plan::exchanges(const Team& team) const {
  const PipelineOptions& p = experiment->pipeline;
  std::vector<std::unique_ptr<GradientExchange>> all;
  if (p.replicas == 1 || p.gradient_compression.rank == 0) return all;
  const auto layers = experiment->stage_layers();
  for (int replica = 0; replica < p.replicas; ++replica)
    for (int stage = 0; stage < p.stages; ++stage) {
      all.emplace_back();
      if (!team.holds(training.schedule.shape.worker_of(stage, replica))) continue;
      all.back() = std::make_unique<GradientExchange>(
          parameter_shapes(layers[static_cast<std::size_t>(stage)], head_of(stage)), p.replicas,
          p.gradient_compression, experiment->train.seed);
    }
  return all;
}

EdgeValues most_values(const Plan& plan) {
  EdgeValues all;
  try {
    for (const Tensors& tensors : boundaries(*plan.experiment, largest_inputs(plan)))
      all.push_back(most_values(tensors));
  } catch (const c10::Error&) {  // a layer needs values
    return {};
  }
  return all;
}

void check_weights(const Plan& plan) {
  if (plan.experiment->weights.path.empty()) return;
  const auto layers = plan.experiment->stage_layers();
  NamedShapes declared;
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    for (auto& entry : state_shapes(layers[stage], plan.head_of(static_cast<int>(stage))))
      declared.push_back(std::move(entry));
  check_weights(plan.experiment->weights, declared);
}

}  // namespace pipewright
