/// An experiment file as types: everything read and checked, nothing opened or allocated yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/experiment/lr_schedule.h"
#include "core/schedule/schedule.h"
#include "core/stage/dataset.h"
#include "core/stage/loss.h"
#include "core/stage/model.h"
#include "core/stage/optimizer.h"

namespace pipewright {

struct LoaderOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true, drop_last = true;
  std::int64_t limit_train = 0, limit_test = 0, validation = 0;
};

enum class Execution : std::uint8_t { Serial, Threads };

struct PipelineOptions {
  int stages = 1, microbatches = 1, replicas = 1;
  std::string balance_rule = "parameters";  ///< "" when a list was given
  std::vector<std::int64_t> balance;        ///< layers per stage, always filled in by check()
  std::vector<int> placement;
  Execution execution = Execution::Serial;
  int threads = 1;
  std::vector<std::string> devices;         ///< "cpu", "cuda" or one per worker
};

struct TrainOptions {
  int epochs = 10;
  std::uint64_t seed = 1;
  bool float64 = false;
  bool sum_gradients = false;
  bool drain_each_epoch = true;
  int evaluate_every = 1;
  int checkpoint_every = 1;  ///< epochs
};

struct OutputOptions {
  bool steps = true, weights = true, trace = false;
};

struct Experiment {
  std::string name;
  std::filesystem::path file;
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Model> model;
  std::filesystem::path weights;  ///< safetensors to start from; "" = initialise
  std::unique_ptr<Scheme> scheme;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loss> loss;
  LrSchedule lr_schedule;
  LoaderOptions loader;
  PipelineOptions pipeline;
  TrainOptions train;
  OutputOptions output;
  Value resolved;      ///< every default written out; parse → same experiment
  std::string digest;  ///< of `resolved` without its name
};

/// Reads a document as load_document() returns it (sweep and table are ignored). Throws
/// Error{Experiment} with all problems, one per line.
Experiment read_experiment(const Value& document, const std::filesystem::path& file);

}  // namespace pipewright
