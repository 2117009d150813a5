// SPDX-License-Identifier: Apache-2.0
// Batch-norm's running statistics of whole mini-batches.
#include "core/nn/deferred_statistics.h"

#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"
#include "tests/unit/stage/stage_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

struct Trained {
  std::vector<at::Tensor> outputs, buffers;
};

/// The layer on each mini-batch, cut into so many micro-batches.
Trained deferred(const LayerPtr& layer, const std::vector<at::Tensor>& minibatches,
                 int microbatches, bool biased = false) {
  const auto parameters = random_parameters(*layer, 1);
  DeferredStatistics statistics(biased);
  Trained trained{.buffers = fresh_buffers(*layer, minibatches[0].scalar_type())};
  std::vector<at::Tensor> typed;
  for (const at::Tensor& parameter : parameters)
    typed.push_back(parameter.to(minibatches[0].scalar_type()));
  int number = 0;
  for (const at::Tensor& minibatch : minibatches) {
    const Pass pass{.minibatch = number++, .microbatches = microbatches, .deferred = &statistics};
    for (const at::Tensor& x : minibatch.tensor_split(microbatches))
      trained.outputs.push_back(layer->forward(x, typed, trained.buffers, pass));
  }
  return trained;
}

/// torchgpipe's own example, measured with it: values 0 … 31, two channels.
TEST(DeferredBatchNorm, GivesTheNumbersOfTorchgpipe) {
  const at::Tensor x = at::arange(32, at::kDouble).view({16, 2, 1, 1});
  for (const int microbatches : {1, 4}) {
    const LayerPtr layer = batch_norm(2);
    const auto once = deferred(layer, {x}, microbatches, true).buffers;
    EXPECT_LT(relative_error(once[0], at::tensor({1.5, 1.6}, at::kDouble)),
              tolerance::kHundredOperations);
    EXPECT_LT(relative_error(once[1], at::tensor({9.4, 9.4}, at::kDouble)),
              tolerance::kHundredOperations);
    const auto twice = deferred(layer, {x, x + 1}, microbatches, true).buffers;
    EXPECT_LT(relative_error(twice[0], at::tensor({2.95, 3.14}, at::kDouble)),
              tolerance::kHundredOperations);
    EXPECT_LT(relative_error(twice[1], at::tensor({16.96, 16.96}, at::kDouble)),
              tolerance::kHundredOperations);
    const auto unbiased = deferred(layer, {x}, microbatches).buffers;
    EXPECT_NEAR(unbiased[1][0].item<double>(), 0.9 + 0.1 * 1360 / 15,
                10 * tolerance::kHundredOperations);
  }
}

TEST(DeferredBatchNorm, MovesStatisticsAsTheUncutMiniBatchDoes) {
  const LayerPtr layer = batch_norm(3);
  const auto parameters = random_parameters(*layer, 1);
  std::vector<at::Tensor> minibatches;
  for (const std::uint64_t seed : {1, 2, 3})
    minibatches.push_back(3 * random({7, 3, 2, 2}, seed) + 5);
  auto whole = fresh_buffers(*layer);
  for (const at::Tensor& x : minibatches) layer->forward(x, parameters, whole, {});
  for (const int microbatches : {1, 2, 3, 7}) {
    const auto cut = deferred(layer, minibatches, microbatches).buffers;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_LT(relative_error(cut[i], whole[i]), kFloat64Relative) << microbatches;
  }
}

TEST(DeferredBatchNorm, NormalisesEachMicroBatchWithItsOwnStatistics) {
  const LayerPtr layer = batch_norm(3);
  const auto parameters = random_parameters(*layer, 1);
  const at::Tensor x = random({6, 3, 2, 2}, 1);
  const auto outputs = deferred(layer, {x}, 3).outputs;
  auto buffers = fresh_buffers(*layer);
  for (int part = 0; part < 3; ++part) {
    const at::Tensor own = layer->forward(x.narrow(0, 2 * part, 2), parameters, buffers, {});
    EXPECT_TRUE(at::equal(outputs[static_cast<std::size_t>(part)], own));
  }
}

/// Sums of squares in float32 would lose the variance of 1 beside a mean of 1000 altogether.
TEST(DeferredBatchNorm, LosesNothingWhereTheMeanIsFarFromZero) {
  const LayerPtr layer = batch_norm(2);
  const at::Tensor x = (random({64, 2, 4, 4}, 1) + 1000).to(at::kFloat);
  const auto cut = deferred(layer, {x}, 8).buffers;
  const BatchNormReference whole(x.to(at::kDouble));
  const at::Tensor exact = whole.variance * whole.count / (whole.count - 1);
  const at::Tensor variance = (cut[1].to(at::kDouble) - 0.9) / 0.1;
  EXPECT_LT(relative_error(variance, exact), tolerance::variance32(1000));
}

TEST(DeferredBatchNorm, MovesThemWithTheLastMicroBatchOnly) {
  const LayerPtr layer = batch_norm(2);
  const auto parameters = random_parameters(*layer, 1);
  auto buffers = fresh_buffers(*layer);
  DeferredStatistics statistics(false);
  const Pass pass{.microbatches = 3, .deferred = &statistics};
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(buffers[0].abs().max().item<double>(), 0);
    EXPECT_TRUE(at::equal(buffers[1], at::ones({2}, at::kDouble)));
    layer->forward(random({4, 2, 2, 2}, seed), parameters, buffers, pass);
  }
  EXPECT_GT(buffers[0].abs().max().item<double>(), 0);
}

/// In an asynchronous schedule the next one may begin before the last has ended.
TEST(DeferredBatchNorm, KeepsMiniBatchesApart) {
  const LayerPtr layer = batch_norm(2);
  const auto parameters = random_parameters(*layer, 1);
  const std::vector<at::Tensor> x{random({4, 2, 2, 2}, 1), random({4, 2, 2, 2}, 2)};
  const auto expected = deferred(layer, x, 2).buffers;
  auto buffers = fresh_buffers(*layer);
  DeferredStatistics statistics(false);
  for (const auto& [minibatch, first] : {std::pair{0, 0}, {1, 0}, {0, 2}, {1, 2}})
    layer->forward(x[static_cast<std::size_t>(minibatch)].narrow(0, first, 2), parameters, buffers,
                   {.minibatch = minibatch, .microbatches = 2, .deferred = &statistics});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(buffers[i], expected[i]));
}

TEST(DeferredBatchNorm, GathersNothingWhileRecomputingOrEvaluating) {
  const LayerPtr layer = batch_norm(2);
  const auto parameters = random_parameters(*layer, 1);
  auto buffers = fresh_buffers(*layer);
  DeferredStatistics statistics(false);
  const at::Tensor x = random({4, 2, 2, 2}, 1);
  Pass pass{.microbatches = 2, .deferred = &statistics};
  const at::Tensor y = layer->forward(x, parameters, buffers, pass);
  pass.recomputing = true;
  EXPECT_TRUE(at::equal(layer->forward(x, parameters, buffers, pass), y));
  pass.recomputing = false;
  pass.training = false;
  layer->forward(x, parameters, buffers, pass);
  EXPECT_EQ(buffers[0].abs().max().item<double>(), 0);
}

using StageStatistics = StageTest;

TEST_F(StageStatistics, AreNoPartOfItsState) {
  const auto made = [&](RunningStatistics running) {
    return Stage({.layers = named({linear(3, 4), batch_norm(4)}),
                  .options = at::kDouble,
                  .optimizer = optimizer_.get(),
                  .loss = loss_.get(),
                  .running_statistics = running},
                 1);
  };
  Stage at_once = made(RunningStatistics::PerMicrobatch), later = made(RunningStatistics::Deferred);
  for (Stage* s : {&at_once, &later}) {
    s->forward(0, {x_.clone()}, {.microbatches = 2}, false);
    EXPECT_EQ(s->named_state().size(), 6U);
  }
  EXPECT_NE(value(at_once, "1.running_mean").abs().max().item<double>(), 0);
  EXPECT_EQ(value(later, "1.running_mean").abs().max().item<double>(), 0);
  later.forward(1, {x_.clone()}, {.microbatches = 2}, false);
  EXPECT_NE(value(later, "1.running_mean").abs().max().item<double>(), 0);
  EXPECT_FALSE(value(later, "1.running_mean").requires_grad());
}

}  // namespace
}  // namespace pipewright::test
