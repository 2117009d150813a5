// SPDX-License-Identifier: Apache-2.0
// Our side of compare_models.py: one model, on one thread, trained on one mini-batch that it holds.
//
//   model_bench '{model: {name: resnet18}, batch: 16, loss: {name: cross_entropy},
//                 pipeline: {stages: 4}, scheme: {name: pipedream}, train: {precision: bfloat16}}'
//
// Pipeline, scheme and train are as in an experiment file; by default one stage, without delay.
// Each line on standard input asks for that many steps (forward, loss, backward, SGD with
// momentum); the answer is the processor time of the block in seconds. Says first, on standard
// error, how many parameters there are.
#include <ATen/Parallel.h>

#include <cstdio>
#include <iostream>

#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/measuring/measured_layout.h"
#include "core/runtime/devices/allocation.h"
#include "core/runtime/executor.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "core/training/plan.h"
#include "tests/bench/fixed_batches.h"
#include "tests/bench/processor_time.h"

namespace pipewright::bench {
namespace {

Experiment experiment_of(const Value& request) {
  const std::int64_t batch = request.find("batch")->integer;
  Value document = parse_yaml(
      concat("{dataset: {name: synthetic, train: ", batch, ", test: ", batch,
             "}, loader: {batch_size: ", batch, ", prefetch: 0}, scheme: {name: model_parallel}, ",
             "pipeline: {stages: 1}, optimizer: {name: sgd, lr: 0.0001, momentum: 0.9}}"),
      "model_bench");
  for (const char* section : {"model", "loss", "pipeline", "scheme", "train"})
    if (const Value* given = request.find(section)) document.at_or_add(section) = *given;
  return read_experiment(document);
}

FixedBatches first_minibatch(const Plan& plan) {
  Loader loader = plan.training_loader(0, 1);
  Share all = loader.share(0, 0, 0);
  all.samples = all.all_samples;
  return {loader.inputs(0, all, at::kCPU), loader.targets(0, all, at::kCPU),
          plan.training.schedule.shape.microbatches};
}

void answer(const std::string& request) {
  Experiment experiment = experiment_of(parse_yaml(request, "model_bench"));
  // Profiles for memory_format: auto are kept here, as beside run folders.
  Team alone;
  experiment = experiment.with(
      settle_layout(experiment, {.runs = "build/profiles", .recorded = {}, .tell = {}}, alone));
  const Plan plan = make_plan(experiment);
  const auto stages = plan.stages();
  FixedBatches batches = first_minibatch(plan);
  std::int64_t parameters = 0;
  for (const auto& stage : stages)
    for (const auto& [name, parameter] : stage->named_parameters()) parameters += parameter.numel();
  std::cerr << parameters << " parameters" << std::endl;
  for (int steps = 0; std::cin >> steps;) {
    const Program program = compile(prove(experiment.scheme->schedule(experiment.shape(steps))));
    const double begin = processor_seconds();
    execute(program, stages,
            {.batches = batches,
             .lr = [](int) { return 1e-4; },
             .minibatches_per_epoch = steps,
             .execution = experiment.pipeline.execution});
    std::cout << processor_seconds() - begin << std::endl;
  }
}

}  // namespace
}  // namespace pipewright::bench

int main(int count, char** values) {
  pipewright::keep_freed_memory();
  at::set_num_threads(1);
  try {
    pipewright::bench::answer(count == 2 ? values[1] : "{}");
    return 0;
  } catch (const pipewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
