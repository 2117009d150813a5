// SPDX-License-Identifier: Apache-2.0
// What simulating a scheme on four stages costs, against a plain LibTorch training loop with the
// same fused update in the same process. Blocks of steps of both are taken in turn; the minimum of
// each counts. Read the `ratio` column; `median_ratio` is the median over neighbouring blocks.
// Interlocking's heads are work that the plain loop has not.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/plain_models.h"

namespace pipewright::bench {
namespace {

struct Setting {
  std::string model;  ///< YAML
  std::vector<std::int64_t> input;
  std::int64_t batch;
  int steps;  ///< of one block
  int rounds;
  std::function<PlainStep(std::shared_ptr<const Optimizer>)> plain;
};

/// A perceptron of eight layers.
Setting mlp(std::int64_t width, std::int64_t batch, int steps, int rounds) {
  std::vector<std::int64_t> widths(8, width);
  widths.push_back(10);
  std::string text;
  for (const std::int64_t each : widths) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return {"{name: mlp, widths: [" + text + "]}",
          {width},
          batch,
          steps,
          rounds,
          [widths](auto optimizer) { return training_loop(plain_mlp(widths), optimizer); }};
}

Setting vgg16() {
  return {"{name: vgg16, batch_norm: true}", {3, 32, 32}, 32, 6, 12, [](auto optimizer) {
            return training_loop(plain_vgg16_bn(), optimizer);
          }};
}

Experiment experiment(const Setting& setting, const std::string& scheme) {
  const bool replicas = scheme.find("data_parallel") != std::string::npos;
  return read_experiment(
      parse_yaml("{dataset: {name: synthetic}, model: " + setting.model + ", scheme: " + scheme +
                     ", pipeline: {stages: " + (replicas ? "1" : "4") +
                     "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}" +
                     ", loader: {batch_size: " + std::to_string(setting.batch) + "}}",
                 "bench"));
}

/// Processor time of this thread, which does all the work: on a shared machine the wall clock
/// counts the neighbours too.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

void step(benchmark::State& state, const Setting& setting, const std::string& scheme) {
  at::set_num_threads(1);
  Experiment e = experiment(setting, scheme);
  Plan plan;
  plan.experiment = &e;
  plan.devices = resolve_devices(e.pipeline.devices, "bench");
  plan.training = compile(prove(e.schedule(setting.steps)));
  plan.auxiliary = plan.training.schedule.auxiliary;
  const auto stages = plan.stages();
  std::vector<std::int64_t> shape{setting.batch};
  shape.insert(shape.end(), setting.input.begin(), setting.input.end());
  FixedBatches batches(at::randn(shape), at::randint(10, {setting.batch}, at::kLong));
  const PlainStep plain = setting.plain(experiment(setting, scheme).optimizer);
  auto simulated_block = [&] {
    execute(plan.training, stages,
            {.batches = batches,
             .lr = [](int) { return 1e-3; },
             .minibatches_per_epoch = setting.steps});
  };
  auto plain_block = [&] {
    for (int i = 0; i < setting.steps; ++i)
      plain(batches.inputs(0, batches.share(0, 0, 0), at::kCPU)[0],
            batches.targets(0, batches.share(0, 0, 0), at::kCPU));
  };
  double best_simulated = std::numeric_limits<double>::infinity(), best_plain = best_simulated;
  std::vector<double>
      ratios;  // of neighbours in time, which a slow drift of the machine leaves alone
  for (auto _ : state)
    for (int round = 0; round < setting.rounds; ++round) {
      const double plain_seconds = seconds(plain_block), ours = seconds(simulated_block);
      best_plain = std::min(best_plain, plain_seconds);
      best_simulated = std::min(best_simulated, ours);
      ratios.push_back(ours / plain_seconds);
    }
  std::ranges::nth_element(ratios, ratios.begin() + std::ssize(ratios) / 2);
  state.counters["median_ratio"] = ratios[ratios.size() / 2];
  state.counters["plain_ms"] = 1e3 * best_plain / setting.steps;
  state.counters["simulated_ms"] = 1e3 * best_simulated / setting.steps;
  state.counters["ratio"] = best_simulated / best_plain;
  int copies = 0;
  for (const auto& stage : stages) copies = std::max(copies, stage->weights().most_copies());
  state.counters["copies"] = copies;
}

const std::vector<std::pair<const char*, const char*>> kSchemes{
    {"model_parallel", "{name: model_parallel}"},
    {"gpipe", "{name: gpipe}"},
    {"one_f_one_b", "{name: one_f_one_b}"},
    {"pipedream", "{name: pipedream}"},
    {"pipedream_vanilla", "{name: pipedream, weight_stashing: false}"},
    {"pipedream_vertical_sync", "{name: pipedream, vertical_sync: true}"},
    {"spectrain_1", "{name: spectrain, version: 1}"},
    {"spectrain_2", "{name: spectrain, version: 2}"},
    {"pipeoptim", "{name: pipeoptim}"},
    {"xpipe", "{name: xpipe}"},
    {"delayed_sgd", "{name: delayed_sgd, delay: [3, 2, 1, 0]}"},
    {"data_parallel_1", "{name: data_parallel}"},
    {"interlocking_2", "{name: interlocking, width: 2}"},
};

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  for (const auto& [name, scheme] : kSchemes) {
    benchmark::RegisterBenchmark(("mlp8x64/" + std::string(name)).c_str(), step,
                                 mlp(64, 8, 400, 12), scheme)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
    // Weights outweigh the arithmetic.
    benchmark::RegisterBenchmark(("mlp8x1024/" + std::string(name)).c_str(), step,
                                 mlp(1024, 64, 10, 15), scheme)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("vgg16_bn/" + std::string(name)).c_str(), step, vgg16(), scheme)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
