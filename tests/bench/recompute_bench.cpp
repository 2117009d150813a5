// SPDX-License-Identifier: Apache-2.0
// What recomputing every micro-batch adds to a step of GPipe on four stages, against the step's own
// forwards: those of a training, which keep a graph and take batch statistics. Steps of both are
// taken in turn; of each instruction its fastest run counts, as a machine that others use too
// changes pace between steps by more than what is looked for. Read `added`: 1 is the forwards'
// time.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>

#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/executor.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"

namespace pipewright::bench {
namespace {

constexpr int kMicrobatches = 4;

struct Setting {
  const char* model;  ///< YAML
  std::vector<std::int64_t> input;
  std::int64_t batch;
  int rounds;  ///< of a step each
};

/// A pipeline that keeps its activations, or computes them again.
class Pipeline {
 public:
  Pipeline(const Setting& setting, const char* recompute)
      : experiment_(read_experiment(parse_yaml(
            concat("{dataset: {name: synthetic}, model: ", setting.model,
                   ", scheme: {name: gpipe}, pipeline: {stages: 4, microbatches: ", kMicrobatches,
                   ", recompute: ", recompute,
                   "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, loader: "
                   "{batch_size: ",
                   setting.batch, "}}"),
            "bench"))) {
    plan_.experiment = &experiment_;
    plan_.devices = resolve_devices(experiment_.pipeline.devices, "bench");
    plan_.training = compile(prove(experiment_.schedule(1)));
    stages_ = plan_.stages();
    for (const auto& worker : plan_.training.workers)
      fastest_.emplace_back(worker.size(), std::numeric_limits<double>::infinity());
  }

  void step(FixedBatches& batches) {
    std::vector<std::vector<Span>> trace;
    execute(plan_.training, stages_,
            {.batches = batches, .lr = [](int) { return 1e-3; }, .trace = &trace});
    for (std::size_t w = 0; w < trace.size(); ++w)
      for (std::size_t i = 0; i < trace[w].size(); ++i)
        fastest_[w][i] = std::min(fastest_[w][i], trace[w][i].end - trace[w][i].begin);
  }

  /// Milliseconds of a step's instructions of a kind.
  double time(ActionKind kind) const {
    double sum = 0;
    for (std::size_t w = 0; w < fastest_.size(); ++w)
      for (std::size_t i = 0; i < fastest_[w].size(); ++i)
        if (plan_.training.workers[w][i].action.kind == kind) sum += fastest_[w][i];
    return 1e3 * sum;
  }

  double time() const {
    return time(ActionKind::Forward) + time(ActionKind::Recompute) + time(ActionKind::Backward) +
           time(ActionKind::Update);
  }

 private:
  Experiment experiment_;
  Plan plan_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::vector<double>> fastest_;  ///< as the program's instructions; seconds
};

void step(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(1);
  Pipeline keeping(setting, "never"), recomputing(setting, "always");
  std::vector<std::int64_t> shape{setting.batch};
  shape.insert(shape.end(), setting.input.begin(), setting.input.end());
  FixedBatches batches(at::randn(shape), at::randint(10, {setting.batch}, at::kLong),
                       kMicrobatches);
  for (auto _ : state)
    for (int round = 0; round < setting.rounds; ++round) {
      keeping.step(batches);
      recomputing.step(batches);
    }
  const double forward = keeping.time(ActionKind::Forward);
  state.counters["kept_ms"] = keeping.time();
  state.counters["recomputed_ms"] = recomputing.time();
  state.counters["forward_ms"] = forward;
  state.counters["again_ms"] = recomputing.time(ActionKind::Recompute);
  state.counters["added"] = (recomputing.time() - keeping.time()) / forward;
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  const std::pair<const char*, Setting> settings[] = {
      {"mlp8x512",
       {"{name: mlp, widths: [512, 512, 512, 512, 512, 512, 512, 512, 10]}", {512}, 64, 200}},
      {"mlp8x1024",
       {"{name: mlp, widths: [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 10]}",
        {1024},
        64,
        100}},
      {"vgg16_bn", {"{name: vgg16, batch_norm: true}", {3, 32, 32}, 32, 30}}};
  for (const auto& [name, setting] : settings)
    benchmark::RegisterBenchmark(name, step, setting)->Iterations(1)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
