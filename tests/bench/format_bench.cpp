// SPDX-License-Identifier: Apache-2.0
// What channels-last memory brings: training steps of image models in one stage on one thread, in
// both memory formats and both precisions, on mini-batches of 32 images of 32 × 32. Blocks of steps
// take turns, in processor time; the minimum of each counts. `median_ratio` is the median over
// neighbouring blocks. Below 1: channels-last is faster.
//
// With ONEDNN_VERBOSE=1 oneDNN prints each of its operations; the lines of `reorder` are those by
// which it changes the order of what it is given.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/processor_time.h"

namespace pipewright::bench {
namespace {

struct Model {
  const char* name;
  const char* yaml;
  int steps;  ///< of one block
};
constexpr Model kModels[] = {
    {"vgg16_bn", "{name: vgg16, batch_norm: true}", 2},
    {"resnet18", "{name: resnet18, stem: cifar}", 2},
    {"mobilenet_v2", "{name: mobilenet_v2, size: 32}", 4},
};
constexpr int kRounds = 8;

/// A training in one of the formats that can be continued block by block.
class Training {
 public:
  Training(const Model& model, const char* precision, const char* format)
      : experiment_(read_experiment(parse_yaml(
            concat("{dataset: {name: synthetic, train: 32, test: 32}, model: ", model.yaml,
                   ", pipeline: {stages: 1, memory_format: ", format,
                   "}, loader: {batch_size: 32, prefetch: 0}, train: {precision: ", precision,
                   "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}}"),
            "bench"))),
        steps_(model.steps),
        plan_(make_plan(experiment_)),
        program_(compile(prove(experiment_.scheme->schedule(experiment_.shape(steps_))))),
        stages_(plan_.stages()) {
    Loader loader = plan_.training_loader(0, 1);
    const Share all = loader.share(0, 0, 0);
    batches_ = std::make_unique<FixedBatches>(loader.inputs(0, all, at::kCPU),
                                              loader.targets(0, all, at::kCPU));
  }

  /// Milliseconds of processor time of a step.
  double block() {
    const double begin = processor_seconds();
    execute(
        program_, stages_,
        {.batches = *batches_, .lr = [](int) { return 1e-3; }, .minibatches_per_epoch = steps_});
    return 1e3 * (processor_seconds() - begin) / steps_;
  }

 private:
  Experiment experiment_;
  int steps_;
  Plan plan_;
  Program program_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<FixedBatches> batches_;
};

void compare(benchmark::State& state, const Model& model, const char* precision) {
  Training contiguous(model, precision, "contiguous");
  Training last(model, precision, "channels_last");
  double least_contiguous = std::numeric_limits<double>::infinity(), least_last = least_contiguous;
  std::vector<double> ratios;
  contiguous.block();
  last.block();
  for (auto _ : state)
    for (int round = 0; round < kRounds; ++round) {
      const double a = contiguous.block(), b = last.block();
      least_contiguous = std::min(least_contiguous, a);
      least_last = std::min(least_last, b);
      ratios.push_back(b / a);
    }
  std::ranges::nth_element(ratios, ratios.begin() + std::ssize(ratios) / 2);
  state.counters["contiguous_ms"] = least_contiguous;
  state.counters["channels_last_ms"] = least_last;
  state.counters["ratio"] = least_last / least_contiguous;
  state.counters["median_ratio"] = ratios[ratios.size() / 2];
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  at::set_num_threads(1);
  for (const Model& model : kModels)
    for (const char* precision : {"float32", "bfloat16"})
      benchmark::RegisterBenchmark((std::string(model.name) + "/" + precision).c_str(), compare,
                                   model, precision)
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
