// SPDX-License-Identifier: Apache-2.0
// Gradients over replicas: added in order 0 … R−1 whoever comes first, weighted by samples.
#include "core/runtime/reduction.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// Three values whose float32 sum depends on the order: (1e8 + 1) − 1e8 = 0, 1 − 1e8 + 1e8 = 0
/// or 1.
at::Tensor part(int replica) {
  constexpr double kParts[] = {1e8, 1, -1e8};
  return at::full({5, 6}, kParts[replica], at::kFloat);
}

Stages three_replicas() {
  return Laboratory(
             "{pipeline.stages: 1, pipeline.replicas: 3, loader.batch_size: 6, "
             "scheme: {name: data_parallel}}")
      .plan()
      .stages();
}

bool contribute(Reduction& reduction, const Stages& stages, int replica) {
  Stage& stage = *stages[static_cast<std::size_t>(replica)];
  return reduction.contribute(replica, stage.gradients(), stage.device());
}

void take(Reduction& reduction, const Stages& stages) {
  for (std::size_t r = 0; r < stages.size(); ++r)
    reduction.take(static_cast<int>(r), stages[r]->gradients());
}

TEST(Reduction, AddsInTheOrderOfReplicasWhoeverComesFirst) {
  std::vector<int> order{0, 1, 2};
  do {
    const Stages stages = three_replicas();
    for (int r = 0; r < 3; ++r) stages[static_cast<std::size_t>(r)]->gradients()[0] = part(r);
    Reduction reduction(3);
    for (const int replica : order)
      EXPECT_EQ(contribute(reduction, stages, replica), replica == order[2]);
    take(reduction, stages);
    const at::Tensor fold = at::add(at::add(part(0), part(1)), part(2));
    for (const auto& stage : stages) EXPECT_TRUE(at::equal(stage->gradients()[0], fold));
  } while (std::ranges::next_permutation(order).found);
}

TEST(Reduction, LeavesUndefinedWhatNobodyHasAndTakesWhatSomeHave) {
  const Stages stages = three_replicas();
  stages[1]->gradients()[0] = part(1);
  Reduction reduction(3);
  for (int r = 0; r < 3; ++r) contribute(reduction, stages, r);
  take(reduction, stages);
  EXPECT_TRUE(at::equal(stages[0]->gradients()[0], part(1)));
  EXPECT_FALSE(stages[0]->gradients()[1].defined());
  EXPECT_EQ(reduction.rounds(), 1);
}

TEST(Replicas, HaveTheSameWeightsAfterEveryUpdate) {
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    Laboratory laboratory(
        "{pipeline.stages: 2, pipeline.replicas: 3, loader.batch_size: 7, scheme: {name: "
        "pipedream}}");
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, execution);
    for (std::size_t i = 2; i < 6; ++i)
      EXPECT_TRUE(at::equal(stages[i]->weights().latest(), stages[i % 2]->weights().latest()));
  }
}

/// 7 samples over 3 replicas (3, 2, 2), over 2 micro-batches each or none.
void expect_equal_to_one_replica(int microbatches) {
  auto learned = [](const std::string& changes) {
    Laboratory laboratory(concat(
        "{pipeline.stages: 1, loader.batch_size: 7, dataset.train: 49, "
        "train.precision: float64, model: {name: mlp, widths: [6, 5, 5, 3], activation: tanh}",
        changes, "}"));
    Stages stages = laboratory.plan().stages();
    const RunResult result = train(laboratory.plan(), stages, Execution::Serial);
    return std::pair(std::move(stages), flat_losses(result));
  };
  const auto [one, losses] = learned("");
  const auto [three, shared] = learned(
      concat(", pipeline.replicas: 3, scheme: {name: data_parallel}, pipeline.microbatches: ",
             microbatches));
  EXPECT_LT(distance(one, three, state_of(one).size()), kFloat64Relative);
  for (std::size_t m = 0; m < losses.size(); ++m)
    EXPECT_NEAR(losses[m], shared[m], kFloat64Relative);
}

TEST(Replicas, OfUnequalSharesEqualOneReplica) {
  expect_equal_to_one_replica(1);
}
TEST(Replicas, OfUnequalMicroBatchesEqualOneReplica) {
  expect_equal_to_one_replica(2);
}

TEST(Replicas, KeepBatchNormStatisticsOfTheirOwn) {
  Laboratory laboratory(
      "{pipeline.stages: 1, pipeline.replicas: 2, scheme: {name: data_parallel}, "
      "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}");
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Serial);
  EXPECT_FALSE(
      at::equal(stages[0]->named_buffers()[0].second, stages[1]->named_buffers()[0].second));
  EXPECT_TRUE(at::equal(stages[0]->weights().latest(), stages[1]->weights().latest()));
}

}  // namespace
}  // namespace pipewright::test
