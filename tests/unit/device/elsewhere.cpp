// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/elsewhere.h"
#include "tests/unit/tolerances.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/devices/device_stream.h"
#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "core/training/programs.h"

namespace pipewright::test {
namespace {

/// max |a − b| over everything learned, wherever it is.
double distance_between(const Stages& a, const Stages& b) {
  const auto left = state_of(a), right = state_of(b);
  double most = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    most =
        std::max(most, (left[i].second.cpu() - right[i].second.cpu()).abs().max().item<double>());
  return most;
}

RunResult train_on_one_stream(const Plan& plan, const Stages& stages) {
  Loader loader = plan.training_loader(0, 1);
  return execute(plan.training, stages,
                 {.batches = loader,
                  .lr = [](int) { return 0.05; },
                  .seed = plan.experiment->train.seed,
                  .minibatches_per_epoch = plan.minibatches,
                  .execution = Execution::Threads,
                  .own_streams = false});
}

}  // namespace

Plan& plan_on(Laboratory& laboratory, const std::vector<at::Device>& devices) {
  Plan& plan = laboratory.plan();
  for (std::size_t w = 0; w < plan.devices.size(); ++w)
    plan.devices[w] = devices[w % devices.size()];
  return plan;
}

std::string once(const SchemeCase& scheme) {
  const bool one_stage = scheme.name == "data_parallel";
  const int replicas = one_stage || shares_workers(scheme.name) ? 2 : 1;
  return concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
                ", pipeline.replicas: ", replicas,
                ", pipeline.microbatches: 4, train.precision: float64, dataset.train: 40}");
}

void expect_equal_elsewhere(const std::string& changes, const std::vector<at::Device>& devices) {
  SCOPED_TRACE(changes);
  Laboratory here(changes), there(changes);
  const Plan &on_cpu = here.plan(), &plan = plan_on(there, devices);
  const Stages cpu = on_cpu.stages(), serial = plan.stages(), threads = plan.stages(),
               one_stream = plan.stages();
  train(on_cpu, cpu, Execution::Serial);
  const RunResult a = train(plan, serial, Execution::Serial);
  const RunResult b = train(plan, threads, Execution::Threads);
  const RunResult c = train_on_one_stream(plan, one_stream);
  EXPECT_EQ(difference(serial, threads), "");
  EXPECT_EQ(difference(serial, one_stream), "");
  EXPECT_EQ(flat_losses(a), flat_losses(b));
  EXPECT_EQ(flat_losses(a), flat_losses(c));
  EXPECT_LT(distance_between(cpu, threads), tolerance::kTrainedElsewhere);
}

void expect_equal_ways(const std::string& changes, const std::vector<at::Device>& devices) {
  SCOPED_TRACE(changes);
  Laboratory there(changes);
  const Plan& plan = plan_on(there, devices);
  const Stages serial = plan.stages(), threads = plan.stages();
  const auto a = flat_losses(train(plan, serial, Execution::Serial));
  EXPECT_EQ(a, flat_losses(train(plan, threads, Execution::Threads)));
  EXPECT_EQ(difference(serial, threads), "");
  for (const double loss : a) EXPECT_TRUE(std::isfinite(loss));
}

Trained trained(const Plan& plan, GraphRecorder* graphs, int epochs, Interludes* interludes) {
  Trained training{plan.stages(), {}};
  Programs programs(plan);
  Loader loader = plan.training_loader(0, epochs);
  training.result = execute(programs.segment(0, epochs * plan.minibatches), training.stages,
                            {.batches = loader,
                             .lr = [](int minibatch) { return 0.05 / (1 + 0.01 * minibatch); },
                             .seed = plan.experiment->train.seed,
                             .minibatches_per_epoch = plan.minibatches,
                             .graphs = graphs,
                             .interludes = interludes});
  return training;
}

std::string long_training(const std::string& scheme, const std::string& changes, int stages) {
  return concat("{scheme: ", scheme, ", pipeline.stages: ", stages, ", pipeline.microbatches: 4, ",
                "loader.batch_size: 4, dataset.train: 224", changes, "}");
}

void expect_equal(const Trained& one, const Trained& other) {
  EXPECT_EQ(difference(one.stages, other.stages), "");
  EXPECT_EQ(flat_losses(one.result), flat_losses(other.result));
  EXPECT_EQ(one.result.traffic, other.result.traffic);
  current_stream(one.stages.front()->device()).synchronize();
}

GraphsUsed expect_same_with_graphs(const std::string& changes, at::Device device,
                                   GraphRecorder& graphs, int epochs) {
  SCOPED_TRACE(changes);
  Laboratory laboratory(changes);
  const Plan& plan = plan_on(laboratory, {device});
  const Trained graphed = trained(plan, &graphs, epochs);
  expect_equal(trained(plan, nullptr, epochs), graphed);
  return graphed.result.graphs;
}

}  // namespace pipewright::test
