// SPDX-License-Identifier: Apache-2.0
// Dropout: a mask is a function of its name, the mini-batch and the element, and of nothing else.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

LayerPtr named_dropout(double probability, const std::string& name = "fc1.dropout") {
  LayerPtr layer = dropout(probability);
  layer->set_name(name);
  return layer;
}

at::Tensor mask(const Layer& layer, at::IntArrayRef shape, const Pass& pass,
                at::ScalarType type = at::kDouble) {
  return layer.forward(at::ones(shape, type), {}, {}, pass);
}

constexpr Pass kPass{.seed = 3, .epoch = 2, .minibatch = 5};

TEST(Dropout, MatchesItsDefinition) {
  // 7 · 5 elements per sample: micro-batches start on each position within a block of four.
  for (const std::int64_t first : {0, 1, 2, 3, 1000}) {
    Pass pass = kPass;
    pass.first_sample = first;
    const at::Tensor expected =
        dropout_mask_reference({6, 7, 5}, 0.3, 3, "fc1.dropout", 2, 5, first);
    EXPECT_TRUE(at::equal(mask(*named_dropout(0.3), {6, 7, 5}, pass), expected)) << first;
  }
}

TEST(Dropout, DoesNotDependOnTheCutIntoMicroBatches) {
  const LayerPtr layer = named_dropout(0.5);
  const at::Tensor whole = mask(*layer, {8, 3, 3}, kPass);
  for (const std::vector<std::int64_t>& cut : std::vector<std::vector<std::int64_t>>{
           {4, 4}, {3, 3, 2}, {1, 7}, {1, 1, 1, 1, 1, 1, 1, 1}}) {
    Pass pass = kPass;
    std::vector<at::Tensor> parts;
    for (const std::int64_t size : cut) {
      parts.push_back(mask(*layer, {size, 3, 3}, pass));
      pass.first_sample += size;
    }
    EXPECT_TRUE(at::equal(at::cat(parts), whole)) << cut.size() << " micro-batches";
  }
}

/// Of activations [sample, token, width], and of attention's shares [sample, head, query, key], of
/// which a slice's queries have the keys so far.
TEST(Dropout, DoesNotDependOnTheCutIntoSlices) {
  const LayerPtr layer = named_dropout(0.5);
  Pass pass = kPass;
  pass.first_sample = 3;
  const at::Tensor whole = mask(*layer, {2, 12, 5}, pass),
                   shares = mask(*layer, {2, 3, 12, 12}, pass);
  for (const int slices : {2, 3, 12}) {
    pass.slices = slices;
    const std::int64_t tokens = 12 / slices;
    for (pass.slice = 0; pass.slice < slices; ++pass.slice) {
      const std::int64_t first = pass.slice * tokens, keys = first + tokens;
      EXPECT_TRUE(at::equal(mask(*layer, {2, tokens, 5}, pass), whole.narrow(1, first, tokens)));
      EXPECT_TRUE(at::equal(mask(*layer, {2, 3, tokens, keys}, pass),
                            shares.narrow(2, first, tokens).narrow(3, 0, keys)));
    }
  }
}

TEST(Dropout, DoesNotDependOnThreads) {
  const LayerPtr layer = named_dropout(0.5);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = mask(*layer, {64, 1000}, kPass);
  at::set_num_threads(4);
  const at::Tensor four = mask(*layer, {64, 1000}, kPass);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(one, four));
}

TEST(Dropout, IsTheSameMaskInBothPrecisions) {
  const LayerPtr layer = named_dropout(0.25);
  const at::Tensor single = mask(*layer, {4, 50}, kPass, at::kFloat);
  EXPECT_EQ(single.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(single > 0, mask(*layer, {4, 50}, kPass) > 0));
}

TEST(Dropout, KeepsItsShareAndScalesIt) {
  constexpr std::int64_t kCount = 1'000'000;
  for (const double p : {0.1, 0.5, 0.9}) {
    const at::Tensor values = mask(*named_dropout(p), {1000, 1000}, kPass);
    const double kept = (values > 0).sum().item<double>();
    EXPECT_NEAR(kept, kCount * (1 - p), kCount * tolerance::share_of(kCount, p)) << "p = " << p;
    EXPECT_DOUBLE_EQ(values.max().item<double>(), 1 / (1 - p));
    EXPECT_EQ(((values == 0).sum() + (values == 1 / (1 - p)).sum()).item<std::int64_t>(), kCount);
  }
}

TEST(Dropout, DiffersByLayerMiniBatchEpochAndSeed) {
  const LayerPtr layer = named_dropout(0.5);
  const at::Tensor reference = mask(*layer, {4, 100}, kPass);
  EXPECT_TRUE(at::equal(mask(*layer, {4, 100}, kPass), reference));
  EXPECT_FALSE(at::equal(mask(*named_dropout(0.5, "fc2.dropout"), {4, 100}, kPass), reference));
  for (int Pass::*const member : {&Pass::epoch, &Pass::minibatch}) {
    Pass other = kPass;
    ++(other.*member);
    EXPECT_FALSE(at::equal(mask(*layer, {4, 100}, other), reference));
  }
  Pass other = kPass;
  ++other.seed;
  EXPECT_FALSE(at::equal(mask(*layer, {4, 100}, other), reference));
  const Pass exchanged{.seed = 3, .epoch = 5, .minibatch = 2};
  EXPECT_FALSE(at::equal(mask(*layer, {4, 100}, exchanged), reference));
}

TEST(Dropout, IsTheInputItselfInEvaluationAndAtZero) {
  const at::Tensor x = random({3, 4}, 1);
  EXPECT_TRUE(named_dropout(0.5)->forward(x, {}, {}, {.training = false}).is_same(x));
  EXPECT_TRUE(named_dropout(0)->forward(x, {}, {}, kPass).is_same(x));
}

TEST(Dropout, OfEverythingLeavesZeros) {
  EXPECT_EQ(mask(*named_dropout(1), {3, 4}, kPass).abs().max().item<double>(), 0);
}

TEST(Dropout, LeavesItsInputAloneAndTakesAnEmptyOne) {
  const at::Tensor x = random({3, 4}, 1), before = x.clone();
  named_dropout(0.5)->forward(x, {}, {}, kPass);
  EXPECT_TRUE(at::equal(x, before));
  EXPECT_EQ(mask(*named_dropout(0.5), {0, 4}, kPass).numel(), 0);
}

LayerPtr named_channel_dropout(double probability) {
  LayerPtr layer = channel_dropout(probability);
  layer->set_name("conv1.dropout");
  return layer;
}

TEST(ChannelDropout, DropsWholeChannelsByTheirPlaceInTheMiniBatch) {
  for (const std::int64_t first : {0, 3}) {
    Pass pass = kPass;
    pass.first_sample = first;
    const at::Tensor expected =
        dropout_mask_reference({6, 7, 1, 1}, 0.3, 3, "conv1.dropout", 2, 5, first);
    EXPECT_TRUE(at::equal(mask(*named_channel_dropout(0.3), {6, 7, 4, 5}, pass),
                          expected.expand({6, 7, 4, 5})))
        << first;
  }
}

TEST(ChannelDropout, DoesNotDependOnTheCutIntoMicroBatchesNorOnTheMapsSize) {
  const LayerPtr layer = named_channel_dropout(0.5);
  const at::Tensor whole = mask(*layer, {8, 5, 3, 3}, kPass);
  Pass second = kPass;
  second.first_sample = 3;
  EXPECT_TRUE(at::equal(
      at::cat({mask(*layer, {3, 5, 3, 3}, kPass), mask(*layer, {5, 5, 3, 3}, second)}), whole));
  EXPECT_TRUE(at::equal(mask(*layer, {8, 5, 1, 2}, kPass).select(3, 0).select(2, 0),
                        whole.select(3, 0).select(2, 0)));
}

TEST(ChannelDropout, IsTheInputItselfInEvaluationAndTakesAnEmptyOne) {
  const at::Tensor x = random({3, 4, 2, 2}, 1);
  EXPECT_TRUE(named_channel_dropout(0.5)->forward(x, {}, {}, {.training = false}).is_same(x));
  EXPECT_EQ(mask(*named_channel_dropout(0.5), {0, 4, 2, 2}, kPass).numel(), 0);
}

}  // namespace
}  // namespace pipewright::test
