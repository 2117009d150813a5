// SPDX-License-Identifier: Apache-2.0
// What simulating a scheme on four stages costs on one device, against a plain LibTorch training
// loop there: in serial, in threads that share one stream, and in threads with a stream each,
// whose mini-batches overlap. Blocks of steps are taken in turns.
#include <map>

#include "core/base/error.h"
#include "core/measuring/made_up_batch.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/device_bench.h"
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

Fields rounds_of(const DeviceBench& bench, const DeviceModel& model, const SchemeCase& scheme,
                 const std::string& precision) {
  Experiment e = device_experiment(model, scheme.yaml, precision);
  Plan plan;
  plan.experiment = &e;
  plan.devices.assign(static_cast<std::size_t>(e.pipeline.stages), bench.device);
  plan.training = compile(prove(e.schedule(model.steps)));
  plan.auxiliary = plan.training.schedule.auxiliary;
  const auto stages = plan.stages();
  torch::nn::Sequential opponent = plain_model(model, e);
  expect_equal_size(opponent, parameters_of(stages));
  const PlainStep plain =
      fused_loop(opponent, bench.device, e.train.precision.narrow().has_value());
  const auto options = at::TensorOptions(bench.device);
  const Batch wide = made_up_batch(*e.model, model.batch, options.dtype(e.train.precision.weights));
  FixedBatches batches(
      made_up_batch(*e.model, model.batch, options.dtype(e.train.precision.values)).x, wide.y);

  std::map<std::string, std::vector<double>> milliseconds;
  for (int round = 0; round <= bench.rounds; ++round) {
    const auto take = [&](const char* name, const std::function<void()>& block) {
      const double taken = seconds(bench.device, block);
      if (round > 0) milliseconds[name].push_back(1e3 * taken / model.steps);
    };
    take("plain", [&] {
      for (int i = 0; i < model.steps; ++i) plain(wide.x[0], wide.y);
    });
    for (const Way& way : kWays)
      take(way.name, [&] {
        execute(plan.training, stages,
                {.batches = batches,
                 .lr = [](int) { return 1e-3; },
                 .minibatches_per_epoch = model.steps,
                 .execution = way.execution,
                 .own_streams = way.own_streams});
      });
  }
  Fields fields;
  for (const auto& [name, numbers] : milliseconds)
    fields.emplace_back(concat(name, "_ms"), json_numbers(numbers));
  for (const Way& way : kWays)
    fields.emplace_back(concat(way.name, "_over_plain"),
                        json_ratios(milliseconds[way.name], milliseconds["plain"]));
  return fields;
}

}  // namespace

void measure_steps(const DeviceBench& bench) {
  for (const SchemeCase& scheme : kSchemeCases)
    for (const DeviceModel& model : device_models(bench))
      for (const std::string& precision : device_precisions(bench)) {
        if (!bench.scheme.empty() && bench.scheme != scheme.name) continue;
        report("step",
               {{"model", json_text(model.name)},
                {"precision", json_text(precision)},
                {"scheme", json_text(scheme.name)},
                {"static", scheme.is_static ? "true" : "false"},
                {"batch", std::to_string(model.batch)},
                {"steps", std::to_string(model.steps)}},
               [&] { return rounds_of(bench, model, scheme, precision); });
      }
}

}  // namespace pipewright::bench
