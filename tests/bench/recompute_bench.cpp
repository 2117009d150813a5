// What recomputing every micro-batch adds to a step of GPipe on four stages, against the same
// forwards run alone. Blocks of steps of all three are taken in turn, in processor time of the one
// thread that works; the minimum of each counts. Read `added`: 1 is the forwards' time.
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
#include "core/schedule/builders.h"
#include "core/stage/torch.h"
#include "tests/bench/fixed_batches.h"

namespace pipewright::bench {
namespace {

constexpr int kMicrobatches = 4;
constexpr int kRounds = 8;

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

/// A pipeline that keeps its activations, computes them again, or only goes forward.
class Pipeline {
 public:
  enum class Does : std::uint8_t { Keep, Recompute, Forwards };

  Pipeline(const Setting& setting, Does what)
      : experiment_(read_experiment(parse_yaml(
            concat("{dataset: {name: synthetic}, model: ", setting.model,
                   ", scheme: {name: gpipe}, pipeline: {stages: 4, microbatches: ", kMicrobatches,
                   ", recompute: ", what == Does::Recompute ? "always" : "never",
                   "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, loader: "
                   "{batch_size: ",
                   setting.batch, "}}"),
            "bench"))) {
    plan_.experiment = &experiment_;
    plan_.devices = resolve_devices(experiment_.pipeline.devices, "bench");
    plan_.training =
        compile(what == Does::Forwards ? evaluation_schedule(experiment_.shape(setting.steps))
                                       : experiment_.schedule(setting.steps));
    stages_ = plan_.stages();
  }

  /// Seconds of a block.
  double block(FixedBatches& batches, int steps) {
    const double begin = now();
    execute(plan_.training, stages_,
            {.batches = batches, .lr = [](int) { return 1e-3; }, .minibatches_per_epoch = steps});
    return now() - begin;
  }

 private:
  Experiment experiment_;
  Plan plan_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

void step(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(1);
  using Does = Pipeline::Does;
  Pipeline keeping(setting, Does::Keep), recomputing(setting, Does::Recompute),
      forwards(setting, Does::Forwards);
  std::vector<std::int64_t> shape{setting.batch};
  shape.insert(shape.end(), setting.input.begin(), setting.input.end());
  FixedBatches batches(at::randn(shape), at::randint(10, {setting.batch}, at::kLong),
                       kMicrobatches);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double kept = kNone, again = kNone, forward = kNone;
  for (auto _ : state)
    for (int round = 0; round < kRounds; ++round) {
      kept = std::min(kept, keeping.block(batches, setting.steps));
      again = std::min(again, recomputing.block(batches, setting.steps));
      forward = std::min(forward, forwards.block(batches, setting.steps));
    }
  const double per_step = 1e3 / setting.steps;
  state.counters["kept_ms"] = kept * per_step;
  state.counters["recomputed_ms"] = again * per_step;
  state.counters["forward_ms"] = forward * per_step;
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
