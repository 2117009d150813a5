// SPDX-License-Identifier: Apache-2.0
/// An experiment file as types (reading.h makes them). Everything is read and checked; no data set
/// is opened, but for the form of its samples where the model follows from that, and no tensor of
/// the model is allocated.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/codecs/edge_ends.h"
#include "core/config/options.h"
#include "core/config/value.h"
#include "core/experiment/lr_schedule.h"
#include "core/experiment/weights_file.h"
#include "core/nn/dataset.h"
#include "core/nn/loss.h"
#include "core/nn/metric.h"
#include "core/nn/model.h"
#include "core/nn/precision.h"
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/optim/optimizer.h"
#include "core/probes/probes.h"
#include "core/runtime/batches.h"
#include "core/runtime/run_request.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/schedule.h"
#include "core/stage/disturbances.h"
#include "core/stage/holdings.h"
#include "core/translation/beam_search.h"
#include "core/translation/bleu.h"

namespace pipewright {

/// The format of weights files with the model's own names.
inline constexpr const char* kOwnFormat = "pipewright";

/// The one metric that is computed by translating instead of from sums over outputs.
inline constexpr const char* kBleu = "bleu";

struct LoaderOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true, drop_last = true;
  std::int64_t limit_train = 0, limit_test = 0;  ///< 0 = all
  std::int64_t validation = 0;  ///< training samples held out and used instead of the test set
  std::int64_t bucket = 0;  ///< how many mini-batches are sorted by length together; 0 = unsorted
  bool reshuffle = true;    ///< a new order of samples for every epoch
  int prefetch = 1;         ///< number of threads that assemble mini-batches ahead
};

struct PipelineOptions {
  int stages = 1, microbatches = 1, replicas = 1;
  int slices = 1;  ///< of a micro-batch, along its sequences; each is a pass
  int passes() const { return microbatches * slices; }  ///< forwards of a stage in a mini-batch
  MicrobatchSizes microbatch_sizes = MicrobatchSizes::Even;
  Execution execution = Execution::Serial;
  bool cuda_graphs = false;  ///< passes are recorded as graphs
  int threads = 1;
  std::chrono::milliseconds timeout{60000};  ///< deadlock timeout
  std::vector<std::string> devices;          ///< one per worker
  Recomputation recompute = Recomputation::Never;
  std::vector<ScheduleRewrite> rewrites;  ///< of the scheme's schedule, in this order
  RunningStatistics batch_norm = RunningStatistics::PerMicrobatch;
  Compression compression;
  GradientCompression gradient_compression;
};

/// Where the model lies. What the file leaves to measurements is open when it has been read;
/// settle_layout() decides it.
struct Layout {
  std::vector<std::int64_t> balance;  ///< layers per stage; empty: open
  std::vector<Skip> skips;            ///< skip connections between these stages
  std::vector<TiedCopies> tied = {};
  std::vector<int> placement;                       ///< worker of each stage
  std::vector<std::vector<int>> replica_placement;  ///< by the scheme, where replicas share workers
  /// Memory format of images, false if the model convolves none; no value: open.
  std::optional<bool> channels_last = false;

  bool open() const { return balance.empty() || !channels_last; }
};

/// How `balance: time | memory` cuts the model, once its layers have been measured.
struct MeasuredBalance {
  bool by_memory = false;
  std::filesystem::path profile;  ///< file; empty: that of the run folders, measured if missing
  double bandwidth = std::numeric_limits<double>::infinity();  ///< of a link, bytes/s
  double latency = 0;                                          ///< of a message, s
  double memory = 0;                                           ///< of a worker, bytes; 0 = no limit
  bool each = false;  ///< runs of a sweep are cut each by itself
};

struct TrainOptions {
  int epochs = 10;
  std::int64_t steps = 0;  ///< mini-batches of the training; 0: those of its epochs
  /// Mini-batches of the training, of which an epoch has so many.
  std::int64_t length(std::int64_t minibatches_per_epoch) const {
    return steps > 0 ? steps : epochs * minibatches_per_epoch;
  }
  /// "3 epochs" or "3000 steps".
  std::string length_text() const;
  std::uint64_t seed = 1;
  Precision precision;
  bool sum_gradients = false;
  bool drain_each_epoch = true;
  int evaluate_every = 1;            ///< epochs; not read where evaluate_within > 0
  std::int64_t evaluate_within = 0;  ///< epochs or mini-batches between evaluations; 0: none within
  bool evaluate_unit_epoch = true;
  int checkpoint_every = 1;  ///< epochs or mini-batches; 0 = never
  bool checkpoint_unit_epoch = true;
};

struct OutputOptions {
  bool steps = true, weights = true, trace = false, tensorboard = false;
};

/// How test sources are translated for the metric BLEU.
struct TranslationOptions {
  BeamOptions search;
  int batch_size = 128;  ///< sentences translated at once
  BleuOptions bleu;
};

/// A value: nobody changes it once it has been read.
struct Experiment {
  std::string name;
  std::shared_ptr<const Model> model;
  std::vector<LayerPtr> layers;  ///< of the model
  Layout layout;
  std::optional<MeasuredBalance> measured_balance;  ///< if set, a measurement decides the balance
  WeightsFile weights;                              ///< weights to start from
  std::shared_ptr<const Scheme> scheme;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Loss> loss;
  /// Metrics of test data, columns "test_<name>": accuracy, those of the data set, those requested.
  std::vector<std::string> metric_names;
  std::vector<std::shared_ptr<const Metric>> metrics;  ///< in that order; null for kBleu
  TranslationOptions translation;
  std::vector<NamedProbe> probes;
  /// ProbedStage::delay of each stage, if a probe or the optimizer needs it.
  std::vector<int> delays;
  /// Optimizer::of_stage() of each stage; empty if `optimizer` serves all.
  std::vector<std::shared_ptr<const Optimizer>> stage_optimizers;
  LrSchedule lr_schedule;
  LoaderOptions loader;
  PipelineOptions pipeline;
  TrainOptions train;
  Perturbation perturbation;
  std::vector<NamedGradientRule> gradient_rules;
  OutputOptions output;
  Value resolved;        ///< document with all defaults; reading it gives the same experiment
  std::string digest;    ///< digest of `resolved` without the name
  std::string identity;  ///< digest of what a resumed run must agree on (identity.h)

  Value given;  ///< the document it was read from, for places in messages

  /// The optimizer of a stage.
  const Optimizer& optimizer_of(int stage) const {
    return stage_optimizers.empty() ? *optimizer
                                    : *stage_optimizers[static_cast<std::size_t>(stage)];
  }
  /// What its stages hold under a schedule. Must not outlive the experiment.
  Holdings holdings(const Schedule& schedule) const;
  /// Bytes of numbers that the model fixes beside its parameters (FixedNumbers), which each worker
  /// holds once for all of its stages.
  std::int64_t fixed_bytes() const;
  /// The learning rate of mini-batch `step` of a training of so many mini-batches, before gradient
  /// rules and schemes change it. Before the first mini-batch it is that of the first, after the
  /// last that of the last, because predictions may stand for updates there. A schedule per epoch
  /// counts an epoch that ends early as one.
  double learning_rate(std::int64_t step, std::int64_t minibatches_per_epoch,
                       std::int64_t minibatches) const;
  /// The layers of each stage; no stages while the cut is open.
  std::vector<std::vector<LayerPtr>> stage_layers() const;
  /// The same with the auxiliary heads of the scheme, which are called as Plan::head_of() calls
  /// them.
  std::vector<std::vector<LayerPtr>> stage_layers_and_heads() const;
  /// A new auxiliary head for what a stage passes on; null: the model has none there.
  LayerPtr head_behind(int stage) const;
  /// Its layout with the model cut so. Throws Error{Experiment} as skips_between() does.
  Layout cut(std::vector<std::int64_t> balance) const;
  /// The same experiment with what was open decided, in `resolved`, too.
  Experiment with(Layout settled) const;
  /// Place in the file of a dotted option such as "loader.batch_size", or of the innermost section
  /// around it that the file has.
  std::string where(const std::string& dotted) const;
  /// The pipeline's shape for that many mini-batches, to ask the scheme for a schedule.
  PipelineShape shape(int minibatches, int first_minibatch = 0) const;
  /// The scheme's schedule for a shape, with the rewrites of the pipeline.
  Schedule schedule_without_rules(const PipelineShape& shape) const;
  /// The same with what gradient rules ask of updates, such as factors of their learning rates.
  /// `waiting` is Schedule::waiting.
  Schedule schedule_in(const PipelineShape& shape,
                       std::vector<std::vector<int>> waiting = {}) const;
  /// The schedule for the pipeline's shape. Throws if the number of mini-batches is too large.
  Schedule schedule(int minibatches, int first_minibatch = 0,
                    std::vector<std::vector<int>> waiting = {}) const;
};

/// Place of a dotted option, or of the innermost section around it that the document has.
Place place_in(const Value& document, std::string dotted);

}  // namespace pipewright
