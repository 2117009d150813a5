// SPDX-License-Identifier: Apache-2.0
// What one action costs beside its layers: a model of layers that do nothing, so that all the time
// is the executor's. Interlocking's heads and losses are real work and left out.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/runtime/executor.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"

namespace pipewright::bench {
namespace {

class NoBatches final : public Batches {
 public:
  Share share(int, int, int) const override { return {0, 1, 1, 1}; }
  Tensors inputs(int, const Share&, at::Device) override { return {x_}; }
  at::Tensor targets(int, const Share&, at::Device) override { return x_; }

 private:
  at::Tensor x_ = at::zeros({1, 1});
};

class Nothing final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input;
  }
};

class NoLoss final : public Loss {
 public:
  at::Tensor operator()(const at::Tensor&, const at::Tensor& target) const override {
    return target[0][0];
  }
};

/// Forwards only: no autograd engine, no layers, so nothing but the executor and its messages.
void actions(benchmark::State& state, Execution execution) {
  at::set_num_threads(1);
  constexpr int kStages = 2, kMinibatches = 2000;
  const Program program = compile(prove(
      evaluation_schedule({.stages = kStages, .minibatches = kMinibatches, .link_capacity = 2})));
  Problems problems;
  Options options(nullptr, "optimizer", problems);
  const auto optimizer = Registry<Optimizer>::instance().find("sgd")->make(options);
  const NoLoss loss;
  std::vector<std::unique_ptr<Stage>> stages;
  for (int i = 0; i < kStages; ++i) {
    auto layer = std::make_shared<Nothing>();
    layer->set_name(std::to_string(i));
    stages.push_back(std::make_unique<Stage>(StageParts{.index = i,
                                                        .last = i + 1 == kStages,
                                                        .layers = {layer},
                                                        .options = at::kFloat,
                                                        .optimizer = optimizer.get(),
                                                        .loss = &loss},
                                             1));
  }
  NoBatches batches;
  for (auto _ : state)
    execute(program, stages,
            {.batches = batches,
             .lr = [](int) { return 0.0; },
             .minibatches_per_epoch = kMinibatches,
             .execution = execution});
  state.counters["us_per_action"] = benchmark::Counter(
      1e-6 * kStages * kMinibatches,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(actions, serial, Execution::Serial)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(actions, threads, Execution::Threads)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace pipewright::bench

BENCHMARK_MAIN();
