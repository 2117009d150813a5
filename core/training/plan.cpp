// SPDX-License-Identifier: Apache-2.0
#include "core/training/plan.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/render.h"
#include "core/experiment/perturbation.h"
#include "core/experiment/reading.h"
#include "core/runtime/devices/device.h"
#include "core/schedule/builders.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/schedule_size.h"
#include "core/system/machine_limits.h"
#include "core/training/data_fit.h"
#include "core/training/evaluations_within.h"

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
  // Bytes an action. Proving takes 540 to 600, measured over seven schemes.
  constexpr std::size_t kEach = 512;
  try {
    // The end of a short schedule lacks gradients of copies that a longer one has
    // (late_gradients.h).
    if (repeats && !e.output.trace && shape.tied.empty()) {
      check_minibatch_numbers(shape, minibatches);
      if (auto loop = find_loop(make, static_cast<int>(minibatches))) return *std::move(loop);
    }
    check_schedule_size(shape, minibatches, kEach);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), e.where("pipeline"));
  }
  return prove_for_eyes(make(static_cast<int>(minibatches)));
}

/// Splits the samples into those for training and those for evaluation (test or held out).
void split_samples(Plan& plan) {
  const LoaderOptions& loader = plan.experiment->loader;
  const Dataset& dataset = *plan.dataset;
  plan.train = limited(dataset, Split::Train, loader.limit_train);
  if (loader.validation == 0) {
    plan.test = limited(dataset, Split::Test, loader.limit_test);
    return;
  }
  const auto held_out = static_cast<std::ptrdiff_t>(loader.validation);
  if (held_out >= std::ssize(plan.train))
    throw experiment_error(plan.experiment->where("loader.validation"),
                           "loader.validation holds out ", held_out, " of ", plan.train.size(),
                           " training samples; none are left to train on");
  std::vector<std::int64_t> order = epoch_permutation(plan.train, true, 0, 0);
  plan.test.assign(order.end() - held_out, order.end());
  plan.train.assign(order.begin(), order.end() - held_out);
  std::ranges::sort(plan.train);
  std::ranges::sort(plan.test);
  plan.test_split = Split::Train;
}

/// Reads the lengths of training samples if loader.bucket needs them.
void read_lengths(Plan& plan) {
  const Experiment& e = *plan.experiment;
  if (e.loader.bucket == 0) return;
  for (std::int64_t i = 0; i < plan.dataset->size(Split::Train); ++i)
    plan.lengths.push_back(plan.dataset->length(Split::Train, i));
  if (std::ranges::count(plan.lengths, 0) == std::ssize(plan.lengths))
    throw experiment_error(
        e.where("loader.bucket"),
        "loader.bucket sorts texts by length; all samples of this data set have the same");
}

/// Refuses mini-batches of which torch.chunk makes fewer micro-batches than the schedule has.
void check_chunks(const Experiment& e, const EpochOrder& order) {
  const PipelineOptions& p = e.pipeline;
  if (p.microbatch_sizes != MicrobatchSizes::TorchChunk) return;
  for (const int minibatch : {0, order.minibatches() - 1})
    for (const int replica : {0, p.replicas - 1}) {
      const std::int64_t samples = slice_of(order.size_of(minibatch), p.replicas, replica).size;
      if (samples == 0 || torch_chunks(samples, p.microbatches) == p.microbatches) continue;
      throw experiment_error(e.where("pipeline.microbatch_sizes"),
                             "pipeline.microbatch_sizes is torch_chunk, which makes ",
                             torch_chunks(samples, p.microbatches), " and not ", p.microbatches,
                             " micro-batches of ", counted(samples, "sample"), " (mini-batch ",
                             minibatch, p.replicas > 1 ? concat(", replica ", replica) : "",
                             "); expected another pipeline.microbatches or loader.batch_size",
                             minibatch > 0 ? ", or loader.drop_last: true" : "");
    }
}

void check_minibatches(Plan& plan) {
  const Experiment& e = *plan.experiment;
  const EpochOrder order{plan.train, e.loader.batch_size, e.loader.drop_last};
  plan.minibatches = order.minibatches();
  if (plan.minibatches == 0)
    throw experiment_error(e.where("loader.batch_size"), "an epoch has no mini-batch: there are ",
                           counted(plan.train.size(), "training sample"), ", loader.batch_size is ",
                           e.loader.batch_size, " and loader.drop_last ", e.loader.drop_last);
  check_chunks(e, order);
  const std::int64_t least = order.size_of(plan.minibatches - 1) / e.pipeline.replicas;
  if (least < e.pipeline.microbatches)
    throw experiment_error(e.where("pipeline.microbatches"), "the last mini-batch has ",
                           counted(least, "sample"), e.pipeline.replicas > 1 ? " per replica" : "",
                           " for ", counted(e.pipeline.microbatches, "micro-batch"),
                           "; set loader.drop_last: true or another batch_size");
}

/// A remark on evaluations that are rarer than the training is long; "" for others.
std::string evaluation_remark(const DrainPoints& drains) {
  if (drains.evaluate_every <= drains.minibatches) return {};
  return concat("train.evaluate asks for an evaluation every ",
                counted(drains.evaluate_every, "mini-batch"), ", and the training has ",
                drains.minibatches, ": only its end is evaluated");
}

/// The learning rate over a training, which changes between epochs or mini-batches.
struct RatesOfTraining {
  const Experiment& e;
  bool per_step;
  std::int64_t units;  ///< epochs or mini-batches

  explicit RatesOfTraining(const Plan& plan)
      : e(*plan.experiment), per_step(e.lr_schedule.per_step()) {
    const std::int64_t unit = per_step ? 1 : plan.minibatches;
    units = (plan.drains.minibatches + unit - 1) / unit;
  }
  bool is_zero(std::int64_t t) const { return e.lr_schedule.at(1, t, units) == 0; }
  std::string length() const { return counted(units, per_step ? "mini-batch" : "epoch"); }
};

/// Refuses a schedule that multiplies the learning rate by 0 throughout the training.
void check_rates(const Plan& plan) {
  const RatesOfTraining rates(plan);
  if (rates.units == 0) return;
  for (std::int64_t t = 0; t < rates.units; ++t)  // nearly every schedule returns at t = 0 or 1
    if (!rates.is_zero(t)) return;
  throw experiment_error(rates.e.where("lr_schedule"),
                         "the learning rate is 0 throughout the training, which has ",
                         rates.length(),
                         rates.per_step ? "; expected a warm-up that begins above 0"
                                        : "; lr_schedule.per: step changes the rate within an "
                                          "epoch");
}

/// A remark on a learning rate that does less than its schedule says; "" for others.
std::string rate_remark(const Plan& plan) {
  const RatesOfTraining rates(plan);
  const Value& resolved = rates.e.resolved;
  const Value* const length = resolved.find_path("lr_schedule.warmup.length");
  const std::string& name = resolved.find_path("lr_schedule.name")->text;
  if (length->integer > rates.units)
    return concat("lr_schedule.warmup.length is ", length->integer, ", and the training has ",
                  rates.length(), ": the learning rate is still rising when it ends");
  if (rates.per_step || rates.units == 0) return {};
  if (rates.is_zero(0))
    return "the learning rate of the first epoch is 0, because the warm-up of lr_schedule goes by "
           "epochs and begins at 0; lr_schedule.per: step lets it rise within the epoch";
  if (rates.units == 1 && name != "constant")
    return concat("lr_schedule is ", name,
                  " by epochs, and the training has one: the learning "
                  "rate is constant; lr_schedule.per: step changes it within the epoch");
  return {};
}

/// A remark on a scheme that is nothing of its own without slices; "" for others.
std::string slices_remark(const Experiment& e) {
  if (e.pipeline.slices > 1 || e.resolved.find_path("scheme.name")->text != "seq1f1b") return {};
  return "the scheme seq1f1b works on slices of sequences, and pipeline.slices is 1: its schedule "
         "is that of one_f_one_b";
}

void check_heads(const Experiment& e, const std::vector<int>& auxiliary) {
  for (const int stage : auxiliary) {
    if (!e.head_behind(stage))
      throw experiment_error(e.where("scheme"), "the scheme wants a loss after stage ", stage,
                             ", but no auxiliary head is ", "possible after the model's layer '",
                             e.stage_layers()[static_cast<std::size_t>(stage)].back()->name(),
                             "'; choose another scheme, or cut the model elsewhere");
  }
}

}  // namespace

ProvedSchedule proved_schedule(const Experiment& e, std::int64_t minibatches, int first,
                               const std::vector<std::vector<int>>& waiting) {
  return proved(e, e.shape(1), minibatches, e.scheme->repeats(),
                [&](int count) { return e.schedule(count, first, waiting); });
}

DatasetRequest data_request(const Experiment& experiment) {
  const Model& model = *experiment.model;
  return {.seed = experiment.train.seed,
          .model_input = model.input_shape(),
          .model_flattens = model.flattens(),
          .model_classes = model.classes(),
          .model_vocabulary = model.vocabulary(),
          .model_inputs = model.named_inputs(),
          .model_task = model.task(),
          .model_numbers = experiment.train.precision.values,
          .targets = experiment.loss->compares_with()};
}

std::shared_ptr<const Dataset> open_data(const Experiment& experiment) {
  Problems none;  // the section has been read before
  Options root(&experiment.given, "", none);
  std::unique_ptr<Dataset> dataset = read_dataset(root);
  dataset->open(data_request(experiment));
  return dataset;
}

Plan make_plan(const Experiment& experiment, std::shared_ptr<const Dataset> dataset) {
  PIPEWRIGHT_CHECK(!experiment.layout.open(), "the layout is not settled");
  Plan plan;
  plan.experiment = &experiment;
  plan.dataset = dataset ? std::move(dataset) : open_data(experiment);
  plan.devices = resolve_devices(experiment.pipeline.devices, experiment.where("pipeline.device"));
  check_fit(experiment, *plan.dataset);
  split_samples(plan);
  read_lengths(plan);
  check_minibatches(plan);
  plan.drains = drain_points(experiment.train, plan.minibatches);
  check_perturbed_length(experiment, plan.drains.minibatches);
  check_rates(plan);
  plan.training = compile(proved_schedule(experiment, plan.drains.longest(), 0));
  plan.auxiliary = plan.training.schedule.auxiliary;
  check_heads(experiment, plan.auxiliary);
  const EpochOrder test{plan.test, experiment.loader.batch_size, false};
  PipelineShape shape = experiment.shape(std::max(1, test.minibatches())).evaluating();
  shape.link_capacity = kEvaluationLinkCapacity;
  plan.evaluation =
      compile(proved(experiment, shape, shape.minibatches, true, [shape](int minibatches) mutable {
        shape.minibatches = minibatches;
        return evaluation_schedule(shape);
      }));
  check_evaluations(plan);
  return plan;
}

std::int64_t Plan::samples_in(std::int64_t count) const {
  const EpochOrder order{train, experiment->loader.batch_size, experiment->loader.drop_last};
  const auto of = [&](std::int64_t some) {
    std::int64_t samples = 0;
    for (int m = 0; m < static_cast<int>(some); ++m) samples += order.size_of(m);
    return samples;
  };
  return count / minibatches * of(minibatches) + of(count % minibatches);
}

std::vector<std::string> Plan::remarks() const {
  std::vector<std::string> all = dataset->remarks();
  all.insert(all.end(),
             {drains.remark(), evaluation_remark(drains), rate_remark(*this),
              slices_remark(*experiment), perturbation_remark(experiment->perturbation)});
  std::erase(all, "");
  return all;
}

LayerPtr Plan::head_of(int stage) const {
  if (!std::ranges::binary_search(auxiliary, stage)) return nullptr;
  LayerPtr head = experiment->head_behind(stage);
  head->set_name(concat("heads.", stage));
  return head;
}

}  // namespace pipewright
