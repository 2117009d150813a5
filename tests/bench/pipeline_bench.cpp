// SPDX-License-Identifier: Apache-2.0
// What two workers gain: the time per mini-batch of a pipeline of two stages against one worker
// that does everything, in the same process, blocks of both in turn, the fastest of each. As it is,
// workers are threads; under `mpirun -n 2` they are processes.
//   ratio       two workers' time per mini-batch / one worker's
//   share       the slower stage's part of the time of all layers: the least ratio there could be
//   beside      one worker's time while another core does the same work for itself / alone: what
//   the
//               cores' common memory costs, whatever the pipeline does
//   efficiency  (gpipe, one_f_one_b) what the schedule allows for the stages' times, which add up
//   to
//               one worker's time, / what was measured
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/processes/mpi_wire.h"
#include "core/processes/wire_team.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/devices/device.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"

namespace pipewright::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Setting {
  std::string model;  ///< YAML
  std::vector<std::int64_t> input;
  std::int64_t batch;
  int minibatches;  ///< of one block
  int rounds;
};

const Setting kVgg16{"{name: vgg16, batch_norm: true}", {3, 32, 32}, 32, 10, 8};
/// Eight layers of 1024 × 1024 and the last of 10.
const Setting kMlp{
    "{name: mlp, widths: [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 10]}",
    {1024},
    64,
    40,
    6};
const Setting kEncoder{
    "{name: encoder, layers: 6, width: 256, heads: 4, feed_forward: 1024, tokens: 128}",
    {128, 256},
    16,
    10,
    6};

/// Mini-batches at either end of a block that are not timed: the pipeline fills and drains.
constexpr int kEnds = 3;

struct Case {
  const Setting& setting;
  std::string scheme;  ///< YAML
  int microbatches = 1;
  bool synchronous = false;
};

Team* team() {
  static const bool several = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  static Team alone;
  static Team* const all = several ? new WireTeam(mpi_wire(), nullptr) : &alone;
  return all;
}

/// One way to run a case, made once; each block trains on.
class Contender {
 public:
  Contender(const Case& c, std::vector<int> cut, Execution execution)
      : case_(c), execution_(execution), batches_(make_batches(c)) {
    std::string cuts;
    for (const int layers : cut) cuts += concat(cuts.empty() ? "" : ", ", layers);
    const std::string stages =
        cut.empty() ? "stages: 1" : concat("stages: ", cut.size(), ", balance: [", cuts, "]");
    experiment_ = read_experiment(parse_yaml(
        concat("{dataset: {name: synthetic}, model: ", c.setting.model, ", scheme: ", c.scheme,
               ", pipeline: {", stages, ", microbatches: ", c.microbatches,
               "}, optimizer: {name: sgd, lr: 0.0001, momentum: 0.9}, "
               "loader: {batch_size: ",
               c.setting.batch, "}}"),
        "bench"));
    plan_.experiment = &experiment_;
    plan_.devices = resolve_devices(experiment_.pipeline.devices, "bench");
    plan_.training = compile(prove(experiment_.schedule(c.setting.minibatches)));
    plan_.auxiliary = plan_.training.schedule.auxiliary;
    stages_ = plan_.stages(execution == Execution::Mpi ? *team() : Team());
  }

  /// Seconds per mini-batch, between the ends of a block.
  double block() {
    std::vector<Clock::time_point> over(static_cast<std::size_t>(case_.setting.minibatches));
    execute(plan_.training, stages_,
            {.batches = batches_,
             .lr = [](int) { return 1e-4; },
             .minibatches_per_epoch = case_.setting.minibatches,
             .execution = execution_,
             .on_minibatch = [&](int m) { over[static_cast<std::size_t>(m)] = Clock::now(); },
             .trace = execution_ == Execution::Serial ? &trace_ : nullptr,
             .team = team()});
    return per_minibatch([&](int m) {
      return std::chrono::duration<double>(over[static_cast<std::size_t>(m)] - over[0]).count();
    });
  }

  template <class When>
  double per_minibatch(const When& when) const {
    const int last = case_.setting.minibatches - kEnds;
    return (when(last) - when(kEnds)) / (last - kEnds);
  }

  /// Of the last serial block: seconds of each instruction, the fastest of its kind and stage.
  double seconds(const Instruction& wanted) const {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t w = 0; w < trace_.size(); ++w)
      for (std::size_t i = 0; i < trace_[w].size(); ++i) {
        const Action& action = plan_.training.workers[w][i].action;
        if (action.kind == wanted.action.kind && action.stage == wanted.action.stage &&
            action.microbatch == wanted.action.microbatch)
          best = std::min(best, trace_[w][i].end - trace_[w][i].begin);
      }
    return best;
  }

  const Program& program() const { return plan_.training; }
  const Experiment& experiment() const { return experiment_; }

 private:
  static FixedBatches make_batches(const Case& c) {
    std::vector<std::int64_t> shape{c.setting.batch};
    shape.insert(shape.end(), c.setting.input.begin(), c.setting.input.end());
    return {at::randn(shape), at::randint(10, {c.setting.batch}, at::kLong), c.microbatches};
  }

  const Case& case_;
  Execution execution_;
  Experiment experiment_;
  Plan plan_;
  std::vector<std::unique_ptr<Stage>> stages_;
  FixedBatches batches_;
  std::vector<std::vector<Span>> trace_;
};

/// Layers of each of two stages so that the slower one is as fast as possible, from the times of
/// all layers as stages of their own.
struct Cut {
  int first = 1;     ///< layers of stage 0
  double share = 1;  ///< of the slower stage in the time of both: no pipeline is faster
};
Cut balanced(const Case& c) {
  const Case single{c.setting, "{name: model_parallel}", c.microbatches};
  const auto layers = Contender(single, {}, Execution::Serial).experiment().layers.size();
  Contender all(single, std::vector<int>(layers, 1), Execution::Serial);
  all.block();
  std::vector<double> seconds(layers, 0);
  for (const auto& worker : all.program().workers)
    for (const Instruction& each : worker)
      if (each.action.minibatch == 0)
        seconds[static_cast<std::size_t>(each.action.stage)] += all.seconds(each);
  double total = 0, before = 0;
  for (const double s : seconds) total += s;
  Cut cut;
  for (std::size_t i = 0; i + 1 < layers; ++i) {
    before += seconds[i];
    const double share = std::max(before, total - before) / total;
    if (share < cut.share) cut = {static_cast<int>(i) + 1, share};
  }
  return cut;
}

/// When each mini-batch would be over on stage 0 if every action took `seconds` and messages none.
std::vector<double> allowed(const Program& program,
                            const std::function<double(const Instruction&)>& seconds) {
  std::vector<double> free(program.workers.size(), 0),
      over(static_cast<std::size_t>(program.schedule.shape.minibatches), 0);
  std::map<std::pair<int, std::int64_t>, double> sent;  // by link and turn
  for (const auto& [number, position] : program.order) {
    const auto worker = static_cast<std::size_t>(number);
    const Instruction& each = program.workers[worker][static_cast<std::size_t>(position)];
    double& now = free[worker];
    if (each.receive.used()) now = std::max(now, sent[{each.receive.link, each.receive.turn}]);
    now += seconds(each);
    if (each.send.used()) sent[{each.send.link, each.send.turn}] = now;
    if (each.action.stage == 0) over[static_cast<std::size_t>(each.action.minibatch)] = now;
  }
  return over;
}

/// Seconds per mini-batch that the schedule allows, where the stages' times add up to `one`.
double bound(Contender& stages, double one) {
  std::map<std::pair<int, std::pair<ActionKind, int>>, double> known;
  const auto seconds = [&](const Instruction& each) {
    const auto key =
        std::pair(each.action.stage, std::pair(each.action.kind, each.action.microbatch));
    const auto found = known.find(key);
    return found != known.end() ? found->second
                                : known.emplace(key, stages.seconds(each)).first->second;
  };
  double sum = 0;
  for (const auto& worker : stages.program().workers)
    for (const Instruction& each : worker)
      if (each.action.minibatch == 0) sum += seconds(each);
  const auto over =
      allowed(stages.program(), [&](const Instruction& each) { return seconds(each) * one / sum; });
  return stages.per_minibatch([&](int m) { return over[static_cast<std::size_t>(m)]; });
}

/// Seconds per mini-batch of `one` while somebody else trains `other`.
double beside(Contender& one, Contender& other) {
  if (team()->size() > 1) {  // every process does the same
    team()->barrier();
    const double seconds = one.block();
    team()->barrier();
    return seconds;
  }
  const std::jthread neighbour([&] {
    at::set_num_threads(1);
    other.block();
  });
  return one.block();
}

void pipeline(benchmark::State& state, const Case& c) {
  at::set_num_threads(1);
  const Execution execution = team()->size() > 1 ? Execution::Mpi : Execution::Threads;
  Cut cut;
  if (team()->first()) cut = balanced(c);
  double first_layers = team()->first() ? cut.first : 0;
  team()->sum({&first_layers, 1});
  const Case whole{c.setting, c.synchronous ? c.scheme : "{name: model_parallel}", c.microbatches};
  Contender one(whole, {}, Execution::Serial), other(whole, {}, Execution::Serial);
  const int layers = static_cast<int>(one.experiment().layers.size()),
            first = static_cast<int>(first_layers);
  Contender two(c, {first, layers - first}, execution),
      stages(c, {first, layers - first}, Execution::Serial);
  double best_one = std::numeric_limits<double>::infinity(), best_two = best_one,
         best_beside = best_one;
  for (auto _ : state)
    for (int round = 0; round < c.setting.rounds; ++round) {
      if (team()->first()) best_one = std::min(best_one, one.block());
      team()->barrier();
      best_two = std::min(best_two, two.block());
      best_beside = std::min(best_beside, beside(one, other));
    }
  state.counters["one_ms"] = 1e3 * best_one;
  state.counters["two_ms"] = 1e3 * best_two;
  state.counters["ratio"] = best_two / best_one;
  state.counters["first_layers"] = first;
  state.counters["share"] = cut.share;
  state.counters["beside"] = best_beside / best_one;
  if (c.synchronous && team()->first()) {
    stages.block();
    state.counters["efficiency"] = bound(stages, best_one) / best_two;
  }
  team()->barrier();
}

void add(const std::string& name, Case c) {
  benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& state) { pipeline(state, c); })
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

void add_all(const std::string& model, const Setting& setting) {
  add(model + "/pipedream", {setting, "{name: pipedream}"});
  add(model + "/spectrain_2", {setting, "{name: spectrain, version: 2}"});
  add(model + "/pipeoptim", {setting, "{name: pipeoptim}"});
  add(model + "/spectrain_1", {setting, "{name: spectrain, version: 1}"});
  for (const int microbatches : {4, 8})
    for (const char* scheme : {"gpipe", "one_f_one_b"})
      add(concat(model, "/", scheme, "_m", microbatches),
          {setting, concat("{name: ", scheme, "}"), microbatches, true});
}

/// For the processes that do not tell.
class Silent final : public benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  using namespace pipewright::bench;
  pipewright::keep_freed_memory();
  add_all("vgg16_bn", kVgg16);
  add_all("mlp8x1024", kMlp);
  add_all("encoder", kEncoder);
  benchmark::Initialize(&count, values);
  Silent silent;
  if (team()->first())
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&silent);
  if (auto* several = dynamic_cast<pipewright::WireTeam*>(team())) several->finish();
}
