// SPDX-License-Identifier: Apache-2.0
// What a message between two processes costs: there and back as activations and gradients travel,
// against MPI_Send and MPI_Recv of the same bytes into memory that is used again. Blocks of both in
// turn in one run, the fastest of each:  mpirun -n 2 wire_bench
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <mpi.h>

#include <chrono>
#include <limits>

#include "core/processes/mpi_wire.h"
#include "core/processes/wire_team.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/transport.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"

namespace pipewright::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTrips = 40, kRounds = 15;

/// A mini-batch is one trip: stage 0 sends an activation, stage 1 a gradient back.
Program trips() {
  const auto scheme = Registry<Scheme>::instance().find("model_parallel");
  Problems problems;
  Options options(nullptr, "scheme", problems);
  return compile(prove(scheme->make(options)->schedule({.stages = 2, .minibatches = kTrips})));
}

double ours(const Program& program, WireTeam& team, std::int64_t bytes) {
  const auto transport = team.transport(program, at::kCPU, nullptr);
  Envelope message{{at::zeros({bytes / 4})}};
  team.barrier();
  const auto begin = Clock::now();
  for (const Instruction& each : program.workers[static_cast<std::size_t>(team.rank())]) {
    if (each.receive.used()) message = transport->receive(each.receive, team.rank(), {});
    if (each.send.used()) transport->send(each.send, std::exchange(message, {}));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / kTrips;
}

double bare(WireTeam& team, std::int64_t bytes) {
  const at::Tensor buffer = at::zeros({bytes / 4});
  float* const data = buffer.mutable_data_ptr<float>();
  const auto count = static_cast<int>(bytes / 4);
  const bool first = team.first();
  team.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < kTrips; ++i) {
    if (first) MPI_Send(data, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(data, count, MPI_FLOAT, first ? 1 : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) MPI_Send(data, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / kTrips;
}

void there_and_back(benchmark::State& state, WireTeam& team) {
  at::set_num_threads(1);
  const std::int64_t bytes = state.range(0);
  const Program program = trips();
  double best_ours = std::numeric_limits<double>::infinity(), best_bare = best_ours;
  for (auto _ : state)
    for (int round = 0; round < kRounds; ++round) {
      best_bare = std::min(best_bare, bare(team, bytes));
      best_ours = std::min(best_ours, ours(program, team, bytes));
    }
  state.counters["bare_ms"] = 1e3 * best_bare;
  state.counters["ours_ms"] = 1e3 * best_ours;
  state.counters["ratio"] = best_ours / best_bare;
}

class Silent final : public benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright;
  keep_freed_memory();
  int level = 0;  // the team's keeper calls MPI while the bare messages do
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  WireTeam team(mpi_wire(), nullptr);
  if (level < MPI_THREAD_MULTIPLE || team.size() != 2) {
    std::fprintf(stderr, "needs `mpirun -n 2` and an MPI with MPI_THREAD_MULTIPLE\n");
    return 1;
  }
  benchmark::RegisterBenchmark("there_and_back",
                               [&](benchmark::State& state) { bench::there_and_back(state, team); })
      ->Arg(4 << 10)
      ->Arg(256 << 10)
      ->Arg(16 << 20)
      ->Arg(64 << 20)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, values);
  bench::Silent silent;
  if (team.first())
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&silent);
  team.finish();
}
