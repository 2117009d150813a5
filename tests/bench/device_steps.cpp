// SPDX-License-Identifier: Apache-2.0
// What simulating a scheme on four stages costs on one device, against a plain LibTorch training
// loop there: in serial, in threads that share one stream, and in threads with a stream each,
// whose mini-batches overlap. For static schemes, the same kernels as one CUDA graph, too. Blocks
// of steps are taken in turns.
#include <dlfcn.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/measuring/made_up_batch.h"
#include "core/runtime/devices/device_stream.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/system/module_file.h"
#include "core/system/terminal.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/device_bench.h"
#include "tests/bench/device_graph.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/plain_models.h"

namespace pipewright::bench {
namespace {

/// Schemes in order of importance. Those whose weights are the same in all passes of a mini-batch
/// are static: a CUDA graph of their step could be replayed. Interlocking is not counted among
/// them, since its heads are work that the plain step has not.
struct SchemeCase {
  const char* name;
  const char* yaml;
  bool is_static;
};
constexpr SchemeCase kSchemeCases[] = {
    {"one_f_one_b", "{name: one_f_one_b}", true},
    {"pipedream", "{name: pipedream}", false},
    {"spectrain_1", "{name: spectrain, version: 1}", false},
    {"model_parallel", "{name: model_parallel}", true},
    {"spectrain_2", "{name: spectrain, version: 2}", false},
    {"pipeoptim", "{name: pipeoptim}", false},
    {"pipedream_vanilla", "{name: pipedream, weight_stashing: false}", false},
    {"xpipe", "{name: xpipe}", false},
    {"interlocking_2", "{name: interlocking, width: 2}", false},
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
  }
  Work(const Work&) = delete;

  std::vector<std::unique_ptr<Stage>> stages() const { return plan_.stages(); }
  Tensors inputs() { return batches_.inputs(0, batches_.share(0, 0, 0), wide.y.device()); }
  void block(const std::vector<std::unique_ptr<Stage>>& stages, const Way& way) {
    execute(plan_.training, stages,
            {.batches = batches_,
             .lr = [](int) { return 1e-3; },
             .minibatches_per_epoch = steps_,
             .execution = way.execution,
             .own_streams = way.own_streams});
  }

  Experiment experiment;
  Batch wide;  ///< the mini-batch as a plain step takes it

 private:
  Batch batch(const DeviceBench& bench, const DeviceModel& model, at::ScalarType values) const {
    return made_up_batch(*experiment.model, model.batch,
                         at::TensorOptions(bench.device).dtype(values));
  }

  int steps_;
  FixedBatches batches_;
  Plan plan_;
};

std::vector<at::Tensor> weights_of(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::vector<at::Tensor> weights;
  for (const auto& stage : stages)
    for (const auto& [name, parameter] : stage->named_parameters()) weights.push_back(parameter);
  return weights;
}

/// Steps of a static scheme with one micro-batch, stage after stage. The stages do what they do in
/// `serial`; what the host does between them is left out. On a GPU a block replays one CUDA graph
/// of a step: as fast as `pipeline.execution: serial` could become by graphs.
class GraphedStages {
 public:
  GraphedStages(Work& work, at::Device device)
      : x_(work.inputs()), y_(work.wide.y), device_(device) {
    const WorkerStream own(0,
                           device_);  // autograd lets leaves remember the stream they are made on
    stages_ = work.stages();
    for (const auto& stage : stages_) stage->weights().rewind();
  }
  GraphedStages(const GraphedStages&) = delete;
  ~GraphedStages() {
    if (graph_ != nullptr) release_(graph_);
  }

  std::vector<at::Tensor> weights() const { return weights_of(stages_); }

  /// Performs at least kWarmUps steps the first time.
  void block(int steps) {
    if (device_.is_cpu()) {
      for (int i = 0; i < steps; ++i) step();
      return;
    }
    const WorkerStream own(0, device_);
    if (graph_ == nullptr) {
      capture();
      steps -= kWarmUps;
    }
    for (int i = 0; i < steps; ++i) replay_(graph_);
  }

 private:
  static constexpr int kWarmUps = 3;

  void step() {
    const Pass pass;
    Tensors values = x_;
    for (const auto& stage : stages_) {
      stage->use({stage->weights().latest_number(), 0, 0});
      values = stage->forward(0, std::move(values), pass, stage != stages_.front());
    }
    static_cast<void>(stages_.back()->final_loss(0, {y_}));
    Tensors gradients;
    for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
      const bool last = stage == stages_.rbegin(), first = *stage == stages_.front();
      gradients = (*stage)->backward(
          0, {.own_loss = last, .gradients = std::move(gradients), .input_gradient = !first});
      (*stage)->update(/*in_place=*/true, 1e-3);
    }
  }

  void capture() {
    const auto file = module_file("libdevice_graph.so");
    void* const module = file.empty() ? nullptr : ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr)
      throw Error(ErrorKind::Data, concat("no graphs: ", file.empty() ? "not built" : ::dlerror()));
    replay_ = reinterpret_cast<decltype(replay_)>(::dlsym(module, "pipewright_replay"));
    release_ = reinterpret_cast<decltype(release_)>(::dlsym(module, "pipewright_release"));
    const auto captured =
        reinterpret_cast<decltype(&pipewright_capture)>(::dlsym(module, "pipewright_capture"));
    graph_ = captured([](void* own) { static_cast<GraphedStages*>(own)->step(); }, this, kWarmUps);
  }

  Tensors x_;
  at::Tensor y_;
  at::Device device_;
  std::vector<std::unique_ptr<Stage>> stages_;
  void* graph_ = nullptr;
  decltype(&pipewright_replay) replay_ = nullptr;
  decltype(&pipewright_release) release_ = nullptr;
};

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
  std::optional<GraphedStages> graphed;
  if (scheme.is_static) graphed.emplace(work, bench.device);

  Fields fields{{"parameters", std::to_string(parameters)}};
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
    if (graphed) try {
        take("graph", [&] { graphed->block(model.steps); });
        if (round == 0)
          fields.emplace_back("differing_in_graph",
                              std::to_string(differing(weights_of(stages), graphed->weights())));
      } catch (const std::exception& error) {  // LibTorch's too: the other ways are still measured
        fields.emplace_back("graph_error", json_text(split(error.what(), '\n').front()));
        graphed.reset();
      }
    for (const Way& way : std::span(kWays).subspan(1))
      take(way.name, [&] { work.block(stages, way); });
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
  for (const Way& way : kWays)
    fields.emplace_back(concat("differing_in_", way.name),
                        std::to_string(differing(first, weights_after(work, way))));
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
                {"static", scheme.is_static ? "true" : "false"},
                {"batch", std::to_string(model.batch)},
                {"steps", std::to_string(model.steps)}},
               [&] { return measured(bench, model, scheme, precision); });
  };
  for (const SchemeCase& scheme : schemes) say("step", scheme, rounds_of);
  say("bits", schemes.back(), bits_of);
}

}  // namespace pipewright::bench
