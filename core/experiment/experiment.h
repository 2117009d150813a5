/// An experiment file as types: everything read and checked, nothing opened or allocated yet.
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
#include "core/runtime/run_request.h"
#include "core/schedule/recompute.h"
#include "core/schedule/schedule.h"
#include "core/stage/dataset.h"
#include "core/stage/loss.h"
#include "core/stage/metric.h"
#include "core/stage/model.h"
#include "core/stage/optimizer.h"
#include "core/translation/beam_search.h"
#include "core/translation/bleu.h"

namespace pipewright {

/// The metric that is not made of sums over outputs, but by translating.
inline constexpr const char* kBleu = "bleu";

struct LoaderOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true, drop_last = true;
  std::int64_t limit_train = 0, limit_test = 0;  ///< 0 = all
  std::int64_t validation = 0;  ///< training samples held out instead of the test set
  std::int64_t bucket = 0;      ///< mini-batches sorted by length together; 0 = not at all
  bool reshuffle = true;        ///< every epoch has an order of its own
  int prefetch = 1;             ///< threads that assemble mini-batches ahead
};

struct PipelineOptions {
  int stages = 1, microbatches = 1, replicas = 1;
  std::vector<int> placement;
  Execution execution = Execution::Serial;
  int threads = 1;
  std::chrono::milliseconds timeout{60000};  ///< deadlock: nobody computes and nothing moves
  std::vector<std::string> devices;          ///< one per worker
  Recomputation recompute = Recomputation::Never;
  RunningStatistics batch_norm = RunningStatistics::PerMicrobatch;
  Compression compression;
  GradientCompression gradient_compression;
};

/// How `balance: time | memory` cuts, once the layers have been measured.
struct MeasuredBalance {
  bool by_memory = false;
  std::filesystem::path profile;  ///< empty: the runs' own, which is measured if it is not there
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes/s of a link
  double latency = 0;                                          ///< s of a message
  double memory = 0;                                           ///< bytes of a worker; 0 = any
};

struct TrainOptions {
  int epochs = 10;
  std::uint64_t seed = 1;
  bool float64 = false;
  bool sum_gradients = false;
  bool drain_each_epoch = true;
  int evaluate_every = 1;
  int checkpoint_every = 1;  ///< epochs or mini-batches; 0 = never
  bool checkpoint_unit_epoch = true;
};

struct OutputOptions {
  bool steps = true, weights = true, trace = false;
};

/// How test sources are translated where BLEU is asked for.
struct TranslationOptions {
  BeamOptions search;
  int batch_size = 128;  ///< sentences at once
  BleuOptions bleu;
};

struct Experiment {
  std::string name;
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Model> model;
  std::vector<LayerPtr> layers;       ///< of the model
  std::vector<std::int64_t> balance;  ///< layers per stage; empty until settle_balance() …
  std::optional<MeasuredBalance> measured_balance;  ///< … where it is by this
  std::vector<Skip> skips;                          ///< between stages, by the balance
  WeightsFile weights;                              ///< to start from
  std::unique_ptr<Scheme> scheme;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loss> loss;
  /// Of test data: the accuracy, the data set's own, those asked for; columns "test_<name>".
  std::vector<std::string> metric_names;
  std::vector<std::unique_ptr<Metric>> metrics;  ///< null where it is kBleu
  TranslationOptions translation;
  LrSchedule lr_schedule;
  LoaderOptions loader;
  PipelineOptions pipeline;
  TrainOptions train;
  OutputOptions output;
  Value resolved;        ///< every default written out; reading it gives the same experiment
  std::string digest;    ///< of `resolved` without its name
  std::string identity;  ///< of what a resumed run must agree on, see identity.h

  Value given;  ///< the document it was read from: for places in messages

  /// Place of the most exact part of "loader.batch_size" that the file has.
  std::string where(const std::string& dotted) const;
  /// What the scheme is asked for, for that many mini-batches.
  PipelineShape shape(int minibatches, int first_minibatch = 0) const;
  /// The scheme's answer, with recomputations where they are wanted.
  Schedule schedule(int minibatches, int first_minibatch = 0) const;
};

/// Reads a document as load_document() returns it; `sweep` and `table` are ignored. Throws
/// Error{Experiment} with all problems, one per line.
Experiment read_experiment(const Value& document);
/// The same, reporting `faults` of the document's reading with everything else.
Experiment read_experiment(const Value& document, const Problems& faults);

/// Every option of every section, each with its default part's options. part_options(): those of
/// one registered part ("scheme", "gpipe"), or nothing if it is unknown.
std::vector<OptionInfo> experiment_options();
std::vector<OptionInfo> part_options(const std::string& kind, const std::string& name);

}  // namespace pipewright
