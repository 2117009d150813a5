// SPDX-License-Identifier: Apache-2.0
// What simulating a scheme on four stages costs on one device, against a plain LibTorch training
// loop there: in serial, in threads that share one stream, and in threads with a stream each,
// whose mini-batches overlap. On a GPU in serial with graphs, too. Blocks of steps are taken in
// turns.
#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/measuring/made_up_batch.h"
#include "core/runtime/devices/graph_recorder.h"
#include "core/runtime/executor.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/prove.h"
#include "core/system/terminal.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/device_bench.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/plain_models.h"

namespace pipewright::bench {
namespace {

/// Schemes in order of importance. Interlocking's heads are work that the plain step has not.
struct SchemeCase {
  const char* name;
  const char* yaml;
};
constexpr SchemeCase kSchemeCases[] = {
    {"one_f_one_b", "{name: one_f_one_b}"},
    {"pipedream", "{name: pipedream}"},
    {"spectrain_1", "{name: spectrain, version: 1}"},
    {"model_parallel", "{name: model_parallel}"},
    {"spectrain_2", "{name: spectrain, version: 2}"},
    {"pipeoptim", "{name: pipeoptim}"},
    {"pipedream_vanilla", "{name: pipedream, weight_stashing: false}"},
    {"xpipe", "{name: xpipe}"},
    {"interlocking_2", "{name: interlocking, width: 2}"},
};

/// One way to execute the same steps.
struct Way {
  const char* name;
  Execution execution;
  bool own_streams;
};
constexpr Way kWays[] = {{"serial", Execution::Serial, true},
                         {"one_stream", Execution::Threads, false},
                         {"own_streams", Execution::Threads, true}};

/// Without threads where cuDNN measures its algorithms: LibTorch keeps what it has found by thread,
/// and threads are new in every block, so they would only measure that.
std::span<const Way> ways_of() {
  const std::span<const Way> all(kWays);
  return at::globalContext().benchmarkCuDNN() ? all.first(1) : all;
}

torch::nn::Sequential plain_model(const DeviceModel& model, const Experiment& e) {
  if (model.name == "vgg16_bn") return plain_vgg16_bn();
  if (model.name == "resnet50") return plain_resnet50();
  const auto option = [&](const char* name) {
    return e.resolved.find("model")->find(name)->integer;
  };
  return plain_gpt(
      {option("vocabulary"), option("tokens"), option("width"), option("heads"), option("layers")});
}

std::int64_t parameters_of(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::int64_t sum = 0;
  for (const auto& stage : stages)
    for (const auto& [name, parameter] : stage->named_parameters())
      if (name.find("heads.") == std::string::npos) sum += parameter.numel();
  return sum;
}

void expect_equal_size(torch::nn::Sequential& plain, std::int64_t ours) {
  std::int64_t theirs = 0;
  for (const at::Tensor& parameter : plain->parameters()) theirs += parameter.numel();
  PIPEWRIGHT_CHECK(ours == theirs, ours, " parameters, ", theirs, " in the plain model");
}

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A block of steps of a scheme, on a mini-batch that stays on the device.
class Work {
 public:
  Work(const DeviceBench& bench, const DeviceModel& model, const SchemeCase& scheme,
       const std::string& precision)
      : experiment(device_experiment(bench, model, scheme.yaml, precision)),
        wide(batch(bench, model, experiment.train.precision.weights)),
        steps_(model.steps),
        batches_(batch(bench, model, experiment.train.precision.values).x, wide.y) {
    plan_.experiment = &experiment;
    plan_.devices.assign(static_cast<std::size_t>(experiment.pipeline.stages), bench.device);
    plan_.training = compile(prove(experiment.schedule(model.steps)));
    plan_.auxiliary = plan_.training.schedule.auxiliary;
    const auto schedule = [&](int count) { return experiment.schedule(count); };
    auto proved = find_loop(schedule, long_steps());
    long_.emplace(compile(proved ? *std::move(proved) : prove(schedule(long_steps()))));
  }
  Work(const Work&) = delete;

  std::vector<std::unique_ptr<Stage>> stages() const { return plan_.stages(); }
  void block(const std::vector<std::unique_ptr<Stage>>& stages, const Way& way) {
    execute(plan_.training, stages,
            {.batches = batches_,
             .lr = [](int) { return 1e-3; },
             .minibatches_per_epoch = steps_,
             .execution = way.execution,
             .own_streams = way.own_streams});
  }
  /// Seconds of a step in serial, with graphs or without, late in the loop of a longer schedule,
  /// when graphs have long been recorded. Throws if there are graphs and none has been launched.
  double late_step(const std::vector<std::unique_ptr<Stage>>& stages, GraphRecorder* graphs) {
    using Clock = std::chrono::steady_clock;
    const int first = long_steps() * 5 / 8, last = long_steps() * 13 / 16;
    Clock::time_point from, to;
    const RunResult result = execute(*long_, stages,
                                     {.batches = batches_,
                                      .lr = [](int) { return 1e-3; },
                                      .minibatches_per_epoch = long_steps(),
                                      .on_minibatch =
                                          [&](int minibatch) {
                                            if (minibatch == first) from = Clock::now();
                                            if (minibatch == last) to = Clock::now();
                                          },
                                      .graphs = graphs});
    if (graphs != nullptr && result.graphs.rounds == 0)
      throw Error(ErrorKind::Experiment,
                  concat("no graph was launched: ", result.graphs.refusal.empty()
                                                        ? "no round was like an earlier one"
                                                        : result.graphs.refusal));
    return std::chrono::duration<double>(to - from).count() / (last - first);
  }

  Experiment experiment;
  Batch wide;  ///< the mini-batch as a plain step takes it

 private:
  Batch batch(const DeviceBench& bench, const DeviceModel& model, at::ScalarType values) const {
    return made_up_batch(*experiment.model, model.batch,
                         at::TensorOptions(bench.device).dtype(values));
  }

  /// Enough for graphs to be launched in the second half. The loop ends an eighth before the end.
  int long_steps() const { return std::max(4 * steps_, 48); }

  int steps_;
  FixedBatches batches_;
  Plan plan_;
  std::optional<Program> long_;
};

std::vector<at::Tensor> weights_of(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::vector<at::Tensor> weights;
  for (const auto& stage : stages)
    for (const auto& [name, parameter] : stage->named_parameters()) weights.push_back(parameter);
  return weights;
}

/// Lets another program take its turn between two rounds.
void wait_for_turn(const DeviceBench& bench, int round, int steps) {
  if (!bench.paced) return;
  print("{\"kind\": \"turn\", \"round\": %d, \"steps\": %d}\n", round, steps);
  std::fflush(stdout);
  std::string line;
  if (!std::getline(std::cin, line)) throw Error(ErrorKind::Interrupted, "the input has ended");
}

/// The weights after a block, trained from the same beginning.
std::vector<at::Tensor> weights_after(Work& work, const Way& way) {
  const auto stages = work.stages();
  work.block(stages, way);
  return weights_of(stages);
}

std::int64_t differing(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  const at::NoGradGuard no_grad;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < one.size(); ++i) count += one[i].ne(other[i]).sum().item<int64_t>();
  return count;
}

Fields rounds_of(const DeviceBench& bench, const DeviceModel& model, const SchemeCase& scheme,
                 const std::string& precision) {
  Work work(bench, model, scheme, precision);
  const auto stages = work.stages();
  torch::nn::Sequential opponent = plain_model(model, work.experiment);
  const std::int64_t parameters = parameters_of(stages);
  expect_equal_size(opponent, parameters);
  const PlainStep plain =
      fused_loop(opponent, bench.device, work.experiment.train.precision.narrow().has_value());
  Fields fields{{"parameters", std::to_string(parameters)}};
  std::unique_ptr<GraphRecorder> graphs;
  const auto with_graphs = [&](const auto& measured) {
    try {
      measured();
    } catch (const std::exception& error) {  // LibTorch's too: the other ways are still measured
      fields.emplace_back("graphs_error", json_text(split(error.what(), '\n').front()));
      graphs.reset();
    }
  };
  if (!bench.device.is_cpu()) with_graphs([&] { graphs = cuda_graphs(bench.device); });
  std::vector<std::unique_ptr<Stage>> graphed;  // an error leaves them unusable
  if (graphs) graphed = work.stages();
  const std::span<const Way> ways = ways_of();
  std::map<std::string, std::vector<double>> milliseconds;
  for (int round = 0; round <= bench.rounds; ++round) {
    wait_for_turn(bench, round, model.steps);
    const auto take = [&](const char* name, const std::function<void()>& block) {
      const double taken = seconds(bench.device, block);
      if (round > 0) milliseconds[name].push_back(1e3 * taken / model.steps);
    };
    take("plain", [&] {
      for (int i = 0; i < model.steps; ++i) plain(work.wide.x[0], work.wide.y);
    });
    take(kWays[0].name, [&] { work.block(stages, kWays[0]); });
    if (graphs && round > 0)
      with_graphs(
          [&] { milliseconds["graphs"].push_back(1e3 * work.late_step(graphed, graphs.get())); });
    for (const Way& way : ways.subspan(1)) take(way.name, [&] { work.block(stages, way); });
  }
  for (const auto& [name, numbers] : milliseconds)
    fields.emplace_back(concat(name, "_ms"), json_numbers(numbers));
  for (const auto& [name, numbers] : milliseconds)
    if (name != "plain" && numbers.size() == milliseconds["plain"].size())
      fields.emplace_back(concat(name, "_over_plain"), json_ratios(numbers, milliseconds["plain"]));
  return fields;
}

/// How many weights differ from those of the first block in serial.
Fields bits_of(const DeviceBench& bench, const DeviceModel& model, const SchemeCase& scheme,
               const std::string& precision) {
  Work work(bench, model, scheme, precision);
  const std::vector<at::Tensor> first = weights_after(work, kWays[0]);
  Fields fields;
  for (const Way& way : ways_of())
    fields.emplace_back(concat("differing_in_", way.name),
                        std::to_string(differing(first, weights_after(work, way))));
  if (bench.device.is_cpu()) return fields;
  try {
    const auto plain = work.stages(), graphed = work.stages();
    const std::unique_ptr<GraphRecorder> graphs = cuda_graphs(bench.device);
    work.late_step(plain, nullptr);
    work.late_step(graphed, graphs.get());
    fields.emplace_back("differing_in_graphs",
                        std::to_string(differing(weights_of(plain), weights_of(graphed))));
  } catch (const std::exception& error) {  // LibTorch's too: what came before is still told
    fields.emplace_back("graphs_error", json_text(split(error.what(), '\n').front()));
  }
  return fields;
}

std::vector<SchemeCase> chosen_schemes(const DeviceBench& bench) {
  std::vector<SchemeCase> chosen;
  for (const SchemeCase& scheme : kSchemeCases)
    if (bench.schemes.empty() || std::ranges::count(bench.schemes, scheme.name) > 0)
      chosen.push_back(scheme);
  if (chosen.empty()) throw Error(ErrorKind::Experiment, "there is no such scheme");
  return chosen;
}

}  // namespace

void measure_steps(const DeviceBench& bench) {
  const std::vector<SchemeCase> schemes = chosen_schemes(bench);
  const auto say = [&](const char* kind, const SchemeCase& scheme, const auto& measured) {
    for (const DeviceModel& model : device_models(bench))
      for (const std::string& precision : device_precisions(bench))
        report(kind,
               {{"model", json_text(model.name)},
                {"precision", json_text(precision)},
                {"numerics", json_text(bench.numerics)},
                {"scheme", json_text(scheme.name)},
                {"batch", std::to_string(model.batch)},
                {"steps", std::to_string(model.steps)}},
               [&] { return measured(bench, model, scheme, precision); });
  };
  say("bits", schemes.back(), bits_of);
  for (const SchemeCase& scheme : schemes) say("step", scheme, rounds_of);
}

}  // namespace pipewright::bench
