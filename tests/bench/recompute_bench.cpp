// What recomputing every micro-batch adds to a step of GPipe on four stages, against the time of
// the forwards that are run again. Blocks of steps with and without are taken in turn, in processor
// time of the one thread that works; the minimum of each counts. Read `added`: 1 is a forward's
// time.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "core/experiment/experiment.h"
#include "core/experiment/plan.h"
#include "core/runtime/allocation.h"
#include "core/runtime/device.h"
#include "core/runtime/executor.h"
#include "core/stage/torch.h"
#include "tests/bench/fixed_batches.h"

namespace pipewright::bench {
namespace {

constexpr int kMicrobatches = 4;
constexpr int kRounds = 12;

struct Setting {
  const char* model;  ///< YAML
  std::vector<std::int64_t> input;
  std::int64_t batch;
  int steps;  ///< of one block
};

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

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
    plan_.training = compile(experiment_.schedule(setting.steps));
    stages_ = plan_.stages();
  }

  /// Seconds of a block; and of all its actions of one kind, in `of_kind`.
  double block(FixedBatches& batches, int steps, ActionKind kind, double& of_kind) {
    std::vector<std::vector<Span>> trace;
    const double begin = now();
    execute(plan_.training, stages_,
            {.batches = batches,
             .lr = [](int) { return 1e-3; },
             .minibatches_per_epoch = steps,
             .trace = &trace});
    const double seconds = now() - begin;
    double sum = 0;
    for (std::size_t w = 0; w < trace.size(); ++w)
      for (std::size_t i = 0; i < trace[w].size(); ++i)
        if (plan_.training.workers[w][i].action.kind == kind)
          sum += trace[w][i].end - trace[w][i].begin;
    of_kind = std::min(of_kind, sum);
    return seconds;
  }

 private:
  Experiment experiment_;
  Plan plan_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

void step(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(1);
  Pipeline keeping(setting, "never"), recomputing(setting, "always");
  std::vector<std::int64_t> shape{setting.batch};
  shape.insert(shape.end(), setting.input.begin(), setting.input.end());
  FixedBatches batches(at::randn(shape), at::randint(10, {setting.batch}, at::kLong),
                       kMicrobatches);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double kept = kNone, again = kNone, forward = kNone, recompute = kNone;
  for (auto _ : state)
    for (int round = 0; round < kRounds; ++round) {
      kept = std::min(kept, keeping.block(batches, setting.steps, ActionKind::Forward, forward));
      again = std::min(again,
                       recomputing.block(batches, setting.steps, ActionKind::Recompute, recompute));
    }
  const double per_step = 1e3 / setting.steps;
  state.counters["kept_ms"] = kept * per_step;
  state.counters["recomputed_ms"] = again * per_step;
  state.counters["forward_ms"] = forward * per_step;
  state.counters["recompute_ms"] = recompute * per_step;
  state.counters["added"] = (again - kept) / forward;
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  const std::pair<const char*, Setting> settings[] = {
      {"mlp8x1024",
       {"{name: mlp, widths: [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 10]}",
        {1024},
        64,
        10}},
      {"vgg16_bn", {"{name: vgg16, batch_norm: true}", {3, 32, 32}, 32, 3}}};
  for (const auto& [name, setting] : settings)
    benchmark::RegisterBenchmark(name, step, setting)->Iterations(1)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
