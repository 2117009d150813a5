// SPDX-License-Identifier: Apache-2.0
// How fast a schedule is built, proved and simulated, in actions per second of one core; and the
// largest case that must be bearable, with the most memory the process has held.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/cost/cost_table.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/versions.h"
#include "core/simulation/simulate.h"

namespace pipewright::bench {
namespace {

/// A scheme's shape by number: 1F1B with a flush, GPipe, PipeDream over as many mini-batches, 1F1B
/// of four replicas, 1F1B of two stages on each worker, 1F1B that recomputes, interleaved 1F1B of
/// two stages on each worker.
constexpr int kPlain = 0, kFillDrain = 1, kStashing = 2, kReplicas = 3, kTwoEach = 4,
              kRecompute = 5, kInterleaved = 6;

Schedule built(int which, int stages, int microbatches) {
  PipelineShape shape{.stages = stages, .microbatches = microbatches};
  switch (which) {
    case kFillDrain: return pipeline_schedule(shape, {.fill_drain = true});
    case kStashing:
      shape.minibatches = std::exchange(shape.microbatches, 1);
      return pipeline_schedule(shape, {.flush = false}, latest_weights, forward_weights);
    case kReplicas: shape.replicas = 4; break;
    case kTwoEach:
      for (int stage = 0; stage < stages; ++stage) shape.placement.push_back(stage % (stages / 2));
      break;
    case kInterleaved: return looped_schedule(shape, {.chunks = 2, .warm_up = 2}, "interleaved");
    default: break;
  }
  const auto recompute = which == kRecompute ? Recomputation::Always : Recomputation::Never;
  return with_recomputation(pipeline_schedule(shape, {.flush = true}), recompute);
}

std::int64_t actions_of(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& worker : schedule.workers) count += static_cast<std::int64_t>(worker.size());
  return count;
}

std::vector<StageCost> costs(int stages) {
  std::vector<StageCost> all = equal_costs(stages);
  for (StageCost& stage : all) {
    stage.input_bytes = stage.output_bytes = stage.activation_bytes = 1 << 20;
    stage.parameter_bytes = 1 << 22;
  }
  return all;
}

Hardware machine(const Schedule& schedule, bool shared) {
  Hardware hardware = ideal_hardware(schedule.shape.workers());
  hardware.devices_per_host = 8;
  hardware.within = {.latency = 1e-5, .bandwidth = 1e9};
  hardware.between = {.latency = 5e-5, .bandwidth = 1e8};
  for (int host = 0; shared && host * 8 < schedule.shape.workers(); ++host) {
    Bus& bus = hardware.buses.emplace_back();
    for (int device = 0; device < 8; ++device) bus.devices.push_back(host * 8 + device);
    bus.bandwidth = 2e9;
  }
  return hardware;
}

double gigabytes_held() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

void count(benchmark::State& state, std::int64_t actions) {
  state.SetItemsProcessed(state.iterations() * actions);
}

void build(benchmark::State& state) {
  const auto which = static_cast<int>(state.range(0));
  std::int64_t actions = 0;
  for (auto _ : state)
    actions = actions_of(
        built(which, static_cast<int>(state.range(1)), static_cast<int>(state.range(2))));
  count(state, actions);
}

Schedule of(const benchmark::State& state) {
  return built(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
               static_cast<int>(state.range(2)));
}

void prove(benchmark::State& state) {
  const Schedule schedule = of(state);
  for (auto _ : state) benchmark::DoNotOptimize(prove(schedule).order.data());
  count(state, actions_of(schedule));
}

void resolve(benchmark::State& state) {
  const Schedule schedule = of(state);
  for (auto _ : state)
    benchmark::DoNotOptimize(resolve_versions(schedule, PassIndex(schedule)).workers.data());
  count(state, actions_of(schedule));
}

void simulate_with(benchmark::State& state, bool memory, bool shared) {
  const Schedule schedule = of(state);
  const Hardware hardware = machine(schedule, shared);
  const std::vector<StageCost> stages = costs(schedule.shape.stages);
  const ProvedSchedule proved = prove(schedule);
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(proved, stages, hardware, {.memory = memory}).makespan);
  count(state, actions_of(schedule));
}
void time_only(benchmark::State& state) {
  simulate_with(state, false, false);
}
void time_and_memory(benchmark::State& state) {
  simulate_with(state, true, false);
}
void time_with_buses(benchmark::State& state) {
  simulate_with(state, false, true);
}

void cases(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond)->ArgNames({"order", "stages", "microbatches"});
  for (const int which :
       {kPlain, kFillDrain, kStashing, kReplicas, kTwoEach, kRecompute, kInterleaved})
    bench->Args({which, 64, 1024});
}
BENCHMARK(build)->Apply(cases);
BENCHMARK(prove)->Apply(cases);
BENCHMARK(resolve)->Apply(cases);
BENCHMARK(time_only)->Apply(cases);
BENCHMARK(time_and_memory)->Apply(cases);
BENCHMARK(time_with_buses)->Apply(cases);

/// 1F1B of 1,024 stages and 4,096 micro-batches, all of it.
void large(benchmark::State& state) {
  std::int64_t actions = 0;
  for (auto _ : state) {
    const Schedule schedule = built(kPlain, 1024, 4096);
    const ProvedSchedule proved = prove(schedule);
    const Simulation simulation = simulate(proved, costs(1024), machine(schedule, false));
    benchmark::DoNotOptimize(simulation.makespan);
    actions = actions_of(schedule);
  }
  count(state, actions);
  state.counters["GB held"] = gigabytes_held();
}
/// With room for one message on each link, and 1,024 stages with one micro-batch in flight:
/// hard on whoever looks at all workers all the time.
void prove_bounded(benchmark::State& state) {
  Schedule schedule = built(kPlain, 256, 1024);
  schedule.shape.link_capacity = 1;
  for (auto _ : state) benchmark::DoNotOptimize(prove(schedule).order.data());
  count(state, actions_of(schedule));
}
void prove_one_at_a_time(benchmark::State& state) {
  const Schedule schedule =
      pipeline_schedule({.stages = 1024, .microbatches = 64}, {.one_at_a_time = true});
  for (auto _ : state) benchmark::DoNotOptimize(prove(schedule).order.data());
  count(state, actions_of(schedule));
}
BENCHMARK(prove_bounded)->Unit(benchmark::kMillisecond);
BENCHMARK(prove_one_at_a_time)->Unit(benchmark::kMillisecond);
BENCHMARK(large)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace pipewright::bench

BENCHMARK_MAIN();
