// SPDX-License-Identifier: Apache-2.0
// How fast mini-batches are loaded, in processor time of the threads that do it, and whether a
// model waits for them. Needs real data, at ../shared/data beside the source or where
// PIPEWRIGHT_DATA says; without it a benchmark says so and is skipped.
//   items_per_second   images loaded per second of one core
//   ×_of_target        the same / what is asked for: 20,000 of CIFAR-10, 500 of Tiny-ImageNet at
//   224
//   share              (cnn) processor time of loading a mini-batch / of training on it. With two
//                      workers a mini-batch takes half a step at the least, and one thread loads:
//                      below 0.5 nobody ever waits
//   waited             (cnn) share of the wall clock that training in two workers, with one thread
//                      that loads ahead, spends in waiting for a mini-batch; the first few, for
//                      which the pipeline asks at once, left out
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/processor_time.h"

namespace pipewright::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepetitions = 8;
constexpr double kCifarTarget = 20'000, kTinyTarget = 500;

std::filesystem::path data_folder() {
  if (const char* given = std::getenv("PIPEWRIGHT_DATA")) return given;
  return std::filesystem::path(PIPEWRIGHT_SOURCE_DIR) / "../shared/data";
}

/// The first of these below the folder of real data; "" and a skipped benchmark if there is none.
std::string place(benchmark::State& state, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const auto path = data_folder() / name; std::filesystem::exists(path)) return path.string();
  state.SkipWithError(
      ("NOT MEASURED: no real data at " + (data_folder() / names[0]).string()).c_str());
  return {};
}

Experiment experiment(const std::string& dataset, const std::string& model, std::int64_t batch,
                      const std::string& pipeline) {
  return read_experiment(parse_yaml(
      concat("{dataset: ", dataset, ", model: ", model,
             ", scheme: {name: pipedream}, pipeline: ", pipeline,
             ", optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, loader: {batch_size: ", batch,
             ", prefetch: 0}}"),
      "bench"));
}

/// Everything of the data set's training split, in the order of an epoch, no model behind it.
Loader loader_of(const Dataset& data, std::int64_t batch, std::int64_t most, int prefetch) {
  std::vector<std::int64_t> indices(
      static_cast<std::size_t>(std::min(most, data.size(Split::Train))));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  EpochOrder order{.indices = epoch_permutation(std::move(indices), true, 1, 0),
                   .batch_size = batch};
  return Loader({.dataset = &data, .augment = true, .prefetch = prefetch}, {std::move(order)});
}

void load_all(Loader& loader) {
  for (int m = 0; m < loader.minibatches(); ++m) {
    const Share all = loader.share(m, 0, 0);
    benchmark::DoNotOptimize(loader.inputs(m, all, at::kCPU));
    benchmark::DoNotOptimize(loader.targets(m, all, at::kCPU));
  }
}

void load(benchmark::State& state, const Experiment& experiment, std::int64_t batch,
          std::int64_t most, double target) {
  at::set_num_threads(1);
  const auto data = open_data(experiment);
  std::int64_t images = 0;
  double seconds = 0;
  for (auto _ : state) {
    Loader loader = loader_of(*data, batch, most, 0);
    const double begin = processor_seconds();
    load_all(loader);
    const double taken = processor_seconds() - begin;
    state.SetIterationTime(taken);
    seconds += taken;
    images += loader.minibatches() * batch;
  }
  state.SetItemsProcessed(images);
  state.counters["×_of_target"] = static_cast<double>(images) / seconds / target;
}

void cifar10(benchmark::State& state) {
  const std::string root = place(state, {"cifar-10-batches-bin"});
  if (root.empty()) return;
  const Experiment e = experiment("{name: cifar10, root: '" + root + "', batches: 1}",
                                  "{name: cnn, size: 32}", 128, "{stages: 1}");
  load(state, e, 128, 10'000, kCifarTarget);
}

void tiny_imagenet(benchmark::State& state) {
  const std::string root = place(state, {"tiny-imagenet-200/tiny-imagenet-200_10classes.tar.gz",
                                         "tiny-imagenet-200", "tiny-imagenet-200.zip"});
  if (root.empty()) return;
  const Experiment e = experiment("{name: tiny_imagenet, root: '" + root + "', size: 224}",
                                  "{name: resnet18, size: 224}", 32, "{stages: 1}");
  load(state, e, 32, 512, kTinyTarget);
}

/// Mini-batches that two workers ask for before one is trained on, and the one before them.
constexpr int kFirst = 3;

/// Hands on what another gives, and adds up how long it is waited for.
class Watched final : public Batches {
 public:
  explicit Watched(Batches& inner) : inner_(inner) {}
  Share share(int minibatch, int replica, int microbatch) const override {
    return inner_.share(minibatch, replica, microbatch);
  }
  Tensors inputs(int minibatch, const Share& share, at::Device device) override {
    const auto begin = Clock::now();
    Tensors x = inner_.inputs(minibatch, share, device);
    add(minibatch, begin);
    return x;
  }
  at::Tensor targets(int minibatch, const Share& share, at::Device device) override {
    const auto begin = Clock::now();
    at::Tensor y = inner_.targets(minibatch, share, device);
    add(minibatch, begin);
    return y;
  }
  double waited() const { return waited_; }

 private:
  void add(int minibatch, Clock::time_point begin) {
    const std::lock_guard lock(mutex_);
    if (minibatch >= kFirst) waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
  }

  Batches& inner_;
  std::mutex mutex_;
  double waited_ = 0;
};

/// The `cnn` of the laptop's experiments, at CIFAR-10's size.
struct Training {
  explicit Training(const std::string& root, int stages, int steps)
      : experiment(bench::experiment("{name: cifar10, root: '" + root + "', batches: 1}",
                                     "{name: cnn, size: 32}", 128,
                                     concat("{stages: ", stages, "}"))) {
    plan.experiment = &experiment;
    plan.devices = resolve_devices(experiment.pipeline.devices, "bench");
    plan.training = compile(prove(experiment.scheme->schedule(experiment.shape(steps))));
    plan.auxiliary = plan.training.schedule.auxiliary;
    all_stages = plan.stages();
    plan.dataset = open_data(experiment);
  }
  void run(Batches& batches, Execution execution) {
    execute(plan.training, all_stages,
            {.batches = batches,
             .lr = [](int) { return 1e-3; },
             .minibatches_per_epoch = plan.training.schedule.shape.minibatches,
             .execution = execution});
  }

  Experiment experiment;
  Plan plan;
  std::vector<std::unique_ptr<Stage>> all_stages;
};

constexpr int kSteps = 16;
constexpr std::int64_t kBatch = 128, kImages = kSteps * kBatch;

void cnn_share(benchmark::State& state) {
  const std::string root = place(state, {"cifar-10-batches-bin"});
  if (root.empty()) return;
  at::set_num_threads(1);
  Training training(root, 1, kSteps);
  Loader first = loader_of(*training.plan.dataset, kBatch, kBatch, 0);
  const Share all = first.share(0, 0, 0);
  FixedBatches held(first.inputs(0, all, at::kCPU), first.targets(0, all, at::kCPU));
  double loading = 0, computing = 0;
  for (auto _ : state) {
    Loader loader = loader_of(*training.plan.dataset, kBatch, kImages, 0);
    const double begin = processor_seconds();
    load_all(loader);
    const double middle = processor_seconds();
    training.run(held, Execution::Serial);
    const double end = processor_seconds();
    loading += middle - begin;
    computing += end - middle;
    state.SetIterationTime(end - begin);
  }
  const auto steps = static_cast<double>(kSteps * state.iterations());
  state.counters["load_ms"] = 1e3 * loading / steps;
  state.counters["step_ms"] = 1e3 * computing / steps;
  state.counters["share"] = loading / computing;
}

void cnn_waits(benchmark::State& state) {
  const std::string root = place(state, {"cifar-10-batches-bin"});
  if (root.empty()) return;
  Training training(root, 2, kSteps);
  double waited = 0, taken = 0;
  for (auto _ : state) {
    Loader loader = loader_of(*training.plan.dataset, kBatch, kImages, 1);
    Watched watched(loader);
    const auto begin = Clock::now();
    training.run(watched, Execution::Threads);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    state.SetIterationTime(seconds);
    waited += watched.waited();
    taken += seconds;
  }
  state.counters["waited"] = waited / taken;
}

/// The fastest of several repetitions is what the machine can do; what disturbs only slows down.
double least(const std::vector<double>& values) {
  return *std::ranges::min_element(values);
}
double most(const std::vector<double>& values) {
  return *std::ranges::max_element(values);
}

void add(const char* name, void (*work)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name, work)
      ->Iterations(1)
      ->Repetitions(kRepetitions)
      ->UseManualTime()
      ->ComputeStatistics("least", least)
      ->ComputeStatistics("most", most)
      ->ReportAggregatesOnly()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  add("cifar10/crop_flip_normalise", cifar10);
  add("tiny_imagenet/random_resized_crop_224", tiny_imagenet);
  add("cnn/loading_of_a_step", cnn_share);
  add("cnn/waiting_in_two_workers", cnn_waits);
  benchmark::Initialize(&count, values);
  benchmark::RunSpecifiedBenchmarks();
}
