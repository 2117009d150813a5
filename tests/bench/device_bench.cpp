// SPDX-License-Identifier: Apache-2.0
// What simulating a scheme on four stages costs on one GPU, against a plain LibTorch training loop
// there: in serial, in threads that share one stream, and in threads with a stream each, whose
// mini-batches overlap. Blocks of steps are taken in turn; the minimum of each counts. Read the
// ratios. Without a CUDA device there is nothing to measure, and it says so.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <limits>

#include "core/experiment/experiment.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/executor.h"
#include "core/stage/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/plain_models.h"

namespace pipewright::bench {
namespace {

constexpr int kBatch = 128, kSteps = 20, kRounds = 5;

struct Model {
  const char* name;
  const char* yaml;
  PlainStep (*plain)(std::shared_ptr<Optimizer>, at::Device);
};

Experiment experiment(const Model& model, const std::string& scheme) {
  return read_experiment(
      parse_yaml(concat("{dataset: {name: synthetic}, model: ", model.yaml, ", scheme: ", scheme,
                        ", pipeline: {stages: 4, device: 'cuda:0'}, loader: {batch_size: ", kBatch,
                        "}, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}}"),
                 "bench"));
}

/// Of the clock on the wall. Whatever is measured ends by waiting for its last loss at least.
double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One way to execute the same steps.
struct Way {
  const char* name;
  Execution execution;
  bool own_streams;
  double best = std::numeric_limits<double>::infinity();
};

void step(benchmark::State& state, const Model& model, const std::string& scheme) {
  at::set_num_threads(1);
  Experiment e = experiment(model, scheme);
  Plan plan;
  plan.experiment = &e;
  plan.devices = resolve_devices(e.pipeline.devices, "bench");
  plan.training = compile(e.schedule(kSteps));
  plan.auxiliary = plan.training.schedule.auxiliary;
  const at::Device device = plan.devices.front();
  const auto stages = plan.stages();
  FixedBatches batches(at::randn({kBatch, 3, 32, 32}).to(device),
                       at::randint(10, {kBatch}, at::kLong).to(device));
  const PlainStep plain = model.plain(
      std::shared_ptr<Optimizer>(experiment(model, scheme).optimizer.release()), device);
  auto plain_block = [&] {
    for (int i = 0; i < kSteps; ++i)
      plain(batches.inputs(0, batches.share(0, 0, 0), device)[0],
            batches.targets(0, batches.share(0, 0, 0), device));
  };
  Way ways[] = {{"serial", Execution::Serial, true},
                {"one_stream", Execution::Threads, false},
                {"own_streams", Execution::Threads, true}};
  double best_plain = std::numeric_limits<double>::infinity();
  for (auto _ : state)
    for (int round = 0; round <= kRounds; ++round) {
      const double plain_seconds = seconds(plain_block);
      if (round > 0) best_plain = std::min(best_plain, plain_seconds);  // the first warms up
      for (Way& way : ways) {
        const double taken = seconds([&] {
          execute(plan.training, stages,
                  {.batches = batches,
                   .lr = [](int) { return 1e-3; },
                   .minibatches_per_epoch = kSteps,
                   .execution = way.execution,
                   .own_streams = way.own_streams});
        });
        if (round > 0) way.best = std::min(way.best, taken);
      }
    }
  state.counters["plain_ms"] = 1e3 * best_plain / kSteps;
  for (const Way& way : ways) state.counters[way.name] = way.best / best_plain;
}

const Model kModels[] = {{"vgg16_bn", "{name: vgg16, batch_norm: true}", plain_vgg16_bn},
                         {"resnet18", "{name: resnet18}", plain_resnet18}};

const std::vector<std::pair<const char*, const char*>> kSchemes{
    {"model_parallel", "{name: model_parallel}"},
    {"one_f_one_b", "{name: one_f_one_b}"},
    {"pipedream", "{name: pipedream}"},
    {"pipedream_vanilla", "{name: pipedream, weight_stashing: false}"},
    {"spectrain_1", "{name: spectrain, version: 1}"},
    {"spectrain_2", "{name: spectrain, version: 2}"},
    {"pipeoptim", "{name: pipeoptim}"},
    {"xpipe", "{name: xpipe}"},
    {"interlocking_2", "{name: interlocking, width: 2}"},
};

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  if (pipewright::cuda_device_count() == 0) {
    std::puts("no CUDA device that LibTorch can use: nothing to measure");
    return 0;
  }
  for (const auto& model : kModels)
    for (const auto& [name, scheme] : kSchemes)
      benchmark::RegisterBenchmark((std::string(model.name) + "/" + name).c_str(), step, model,
                                   scheme)
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
