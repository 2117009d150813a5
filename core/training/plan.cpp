// SPDX-License-Identifier: Apache-2.0
#include "core/training/plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/render_refusal.h"
#include "core/profiling/boundaries.h"
#include "core/profiling/made_up_batch.h"
#include "core/runtime/devices/device.h"
#include "core/schedule/builders.h"
#include "core/schedule/predictions.h"
#include "core/schedule/schedule_size.h"
#include "core/stage/skips.h"
#include "core/stage/torch.h"
#include "core/system/foreign_error.h"
#include "core/system/machine_limits.h"
#include "core/training/data_fit.h"

namespace pipewright {
namespace {

/// Capacity of links in an evaluation, so that a fast stage does not run far ahead of a slow one.
constexpr int kEvaluationLinkCapacity = 2;

/// Checks that the order of an epoch and a copy of it fit into memory.
void check_order(std::int64_t samples) {
  const double bytes = 2 * sizeof(std::int64_t) * static_cast<double>(samples);
  if (bytes < 1 << 26) return;
  if (const MemoryLimit limit = memory_limit(); bytes > limit.bytes)
    throw Error(ErrorKind::Data,
                concat("the order of ", samples, " samples alone takes ", bytes_text(bytes), "; ",
                       limit.text, "; set loader.limit_train and limit_test"));
}

/// All indices or the first `limit`; if samples are sorted by class, `limit` at equal distances.
std::vector<std::int64_t> limited(const Dataset& dataset, Split split, std::int64_t limit) {
  const std::int64_t size = dataset.size(split), count = limit > 0 ? std::min(size, limit) : size;
  check_order(count);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    indices[static_cast<std::size_t>(i)] = dataset.sorted_by_class() ? i * size / count : i;
  return indices;
}

/// Proves the schedule: as a loop if it may and can be one, else whole if that fits into memory.
ProvedSchedule proved(const Experiment& e, const PipelineShape& shape, std::int64_t minibatches,
                      bool repeats, const ScheduleMaker& make) {
  constexpr std::size_t kEach =
      sizeof(Action) + sizeof(Instruction) + sizeof(ActionWeights) + sizeof(ActionPlace);
  try {
    if (repeats && !e.output.trace) {
      check_minibatch_numbers(shape, minibatches);
      if (auto loop = find_loop(make, static_cast<int>(minibatches))) return *std::move(loop);
    }
    check_schedule_size(shape, minibatches, kEach);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), e.where("pipeline"));
  }
  Schedule schedule = make(static_cast<int>(minibatches));
  std::vector<ActionPlace> order = validate_for_eyes(schedule);
  return {std::move(schedule), std::move(order), {}};
}

/// Splits the samples into those for training and those for evaluation (test or held out).
void split_samples(Plan& plan) {
  const LoaderOptions& loader = plan.experiment->loader;
  const Dataset& dataset = *plan.experiment->dataset;
  plan.train = limited(dataset, Split::Train, loader.limit_train);
  if (loader.validation == 0) {
    plan.test = limited(dataset, Split::Test, loader.limit_test);
    return;
  }
  const auto held_out = static_cast<std::ptrdiff_t>(loader.validation);
  if (held_out >= std::ssize(plan.train))
    throw Error(ErrorKind::Experiment,
                concat("loader.validation holds out ", held_out, " of ", plan.train.size(),
                       " training samples; none are left to train on"),
                plan.experiment->where("loader.validation"));
  std::vector<std::int64_t> order = epoch_permutation(plan.train, true, 0, 0);
  plan.test.assign(order.end() - held_out, order.end());
  plan.train.assign(order.begin(), order.end() - held_out);
  std::ranges::sort(plan.train);
  std::ranges::sort(plan.test);
  plan.test_split = Split::Train;
}

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

/// Reads the lengths of training samples if loader.bucket needs them.
void read_lengths(Plan& plan) {
  const Experiment& e = *plan.experiment;
  if (e.loader.bucket == 0) return;
  for (std::int64_t i = 0; i < e.dataset->size(Split::Train); ++i)
    plan.lengths.push_back(e.dataset->length(Split::Train, i));
  if (std::ranges::count(plan.lengths, 0) == std::ssize(plan.lengths))
    throw Error(ErrorKind::Experiment,
                "loader.bucket sorts texts by length; all samples of this data set have the same",
                e.where("loader.bucket"));
}

void check_minibatches(Plan& plan) {
  const Experiment& e = *plan.experiment;
  const EpochOrder order{plan.train, e.loader.batch_size, e.loader.drop_last};
  plan.minibatches = order.minibatches();
  if (plan.minibatches == 0)
    throw Error(ErrorKind::Experiment,
                concat("an epoch has no mini-batch: there are ",
                       counted(plan.train.size(), "training sample"), ", loader.batch_size is ",
                       e.loader.batch_size, " and loader.drop_last ", e.loader.drop_last),
                e.where("loader.batch_size"));
  const std::int64_t least = order.size_of(plan.minibatches - 1) / e.pipeline.replicas;
  if (least < e.pipeline.microbatches)
    throw Error(ErrorKind::Experiment,
                concat("the last mini-batch has ", counted(least, "sample"),
                       e.pipeline.replicas > 1 ? " per replica" : "", " for ",
                       counted(e.pipeline.microbatches, "micro-batch"),
                       "; set loader.drop_last: true or another batch_size"),
                e.where("pipeline.microbatches"));
}

/// Index of the last layer of a stage.
std::size_t last_layer(const Experiment& e, int stage) {
  return static_cast<std::size_t>(
      std::accumulate(e.balance.begin(), e.balance.begin() + stage + 1, std::int64_t{-1}));
}

void check_heads(const Experiment& e, const std::vector<int>& auxiliary) {
  for (const int stage : auxiliary) {
    const std::size_t last = last_layer(e, stage);
    if (!e.model->head(last))
      throw Error(
          ErrorKind::Experiment,
          concat("the scheme wants a loss after stage ", stage, ", but no auxiliary head is ",
                 "possible after the model's layer '", e.layers[last]->name(),
                 "'; choose another scheme, or cut the model elsewhere"),
          e.where("scheme"));
  }
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
  // A target text may be as long as the longest source.
  if (e.model->vocabulary() > 0) return Tensors(inputs.size(), inputs[0]);
  if (e.model->flattens() || plan.test.empty()) return inputs;
  const Batch one = e.dataset->batch(plan.test_split, std::span(plan.test).first(1), nullptr);
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

ProvedSchedule proved_schedule(const Experiment& e, std::int64_t minibatches, int first) {
  return proved(e, e.shape(1), minibatches, e.scheme->repeats(),
                [&](int count) { return e.schedule(count, first); });
}

Plan make_plan(Experiment& experiment) {
  open_data(experiment);
  return plan_open_data(experiment);
}

void open_data(Experiment& experiment) {
  experiment.dataset->open({.seed = experiment.train.seed,
                            .model_input = experiment.model->input_shape(),
                            .model_flattens = experiment.model->flattens(),
                            .model_classes = experiment.model->classes(),
                            .model_vocabulary = experiment.model->vocabulary(),
                            .model_task = experiment.model->task()});
}

Plan plan_open_data(Experiment& experiment) {
  PIPEWRIGHT_CHECK(!experiment.balance.empty(), "the cut is not settled");
  Plan plan;
  plan.experiment = &experiment;
  plan.devices = resolve_devices(experiment.pipeline.devices, experiment.where("pipeline.device"));
  check_fit(experiment);
  split_samples(plan);
  read_lengths(plan);
  check_minibatches(plan);
  plan.drains = drain_points(experiment.train, plan.minibatches);
  plan.training = compile(proved_schedule(experiment, plan.drains.longest(), 0));
  plan.auxiliary = plan.training.schedule.auxiliary;
  check_heads(experiment, plan.auxiliary);
  const EpochOrder test{plan.test, experiment.loader.batch_size, false};
  PipelineShape shape = experiment.shape(std::max(1, test.minibatches()));
  shape.replicas = 1;
  shape.microbatches = 1;
  shape.link_capacity = kEvaluationLinkCapacity;
  shape.training = false;
  plan.evaluation =
      compile(proved(experiment, shape, shape.minibatches, true, [shape](int minibatches) mutable {
        shape.minibatches = minibatches;
        return evaluation_schedule(shape);
      }));
  return plan;
}

Loader Plan::training_loader(int first_epoch, int count, int first_minibatch) const {
  const Experiment& e = *experiment;
  return Loader({.dataset = e.dataset.get(),
                 .split = Split::Train,
                 .precision = e.train.precision.values,
                 .channels_last = e.pipeline.channels_last,
                 .augment = true,
                 .seed = e.train.seed,
                 .first_epoch = first_epoch,
                 .first_minibatch = first_minibatch,
                 .replicas = e.pipeline.replicas,
                 .microbatches = e.pipeline.microbatches,
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
  return Loader({.dataset = e.dataset.get(),
                 .split = test_split,
                 .precision = e.train.precision.values,
                 .channels_last = e.pipeline.channels_last,
                 .keep = 4 * e.pipeline.stages + 2,
                 .prefetch = e.loader.prefetch,
                 .threads = e.pipeline.threads,
                 .input_shape = shape},
                std::vector<EpochOrder>{{test, e.loader.batch_size, false}});
}

std::vector<std::vector<LayerPtr>> Plan::stage_layers() const {
  std::vector<std::vector<LayerPtr>> stages;
  auto next = experiment->layers.begin();
  for (const std::int64_t count : experiment->balance) {
    stages.emplace_back(next, next + count);
    next += count;
  }
  return stages;
}

LayerPtr Plan::head_of(int stage) const {
  if (!std::ranges::binary_search(auxiliary, stage)) return nullptr;
  LayerPtr head = experiment->model->head(last_layer(*experiment, stage));
  head->set_name(concat("heads.", stage));
  return head;
}

std::vector<std::unique_ptr<Stage>> Plan::stages(const Team& team) const {
  check_weights(*this);
  const Experiment& e = *experiment;
  const auto layers = stage_layers();
  const auto copies = leaving_copies(e.layers, e.balance);
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
                       .channels_last = e.pipeline.channels_last,
                       .optimizer = e.optimizer.get(),
                       .loss = e.loss.get(),
                       .predicts = predictions.any,
                       .keep_gradient = predictions.by_lookahead,
                       .drift_decay = drift_decay(schedule, stage),
                       .running_statistics = e.pipeline.batch_norm};
      all.push_back(made_stage(std::move(parts), e.train.seed, team));
    }
  if (e.weights.path.empty()) return all;
  std::vector<std::pair<std::string, at::Tensor>> state;
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
  const auto layers = stage_layers();
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
  const auto layers = plan.stage_layers();
  NamedShapes declared;
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    for (auto& entry : state_shapes(layers[stage], plan.head_of(static_cast<int>(stage))))
      declared.push_back(std::move(entry));
  check_weights(plan.experiment->weights, declared);
}

}  // namespace pipewright
