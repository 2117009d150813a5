// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/codecs/sample_memory.h"
#include "core/tensors/torch.h"

namespace pipewright::testing {
namespace {

using Samples = std::vector<std::int64_t>;

TEST(SampleMemory, GivesEachSampleItsLastRow) {
  SampleMemory memory(at::kFloat);
  std::map<std::int64_t, at::Tensor> expected;
  at::manual_seed(1);
  for (int round = 0; round < 20; ++round) {
    Samples samples;
    for (int i = 0; i <= round % 5; ++i) samples.push_back((round * 7 + i * 3) % 23 * 1000);
    const at::Tensor rows = at::randn({std::ssize(samples), 2, 3});
    memory.keep(samples, rows);
    for (std::size_t i = 0; i < samples.size(); ++i)
      expected[samples[i]] = rows[static_cast<std::int64_t>(i)];
    for (const auto& [sample, row] : expected) {
      EXPECT_TRUE(memory.has(sample, {2, 3}));
      EXPECT_TRUE(memory.rows(Samples{sample}, {2, 3}, at::kCPU)[0].equal(row));
    }
  }
}

TEST(SampleMemory, HasZerosForSamplesAndSizesItDoesNotKnow) {
  SampleMemory memory(at::kFloat);
  memory.keep(Samples{5}, at::ones({1, 4}));
  EXPECT_FALSE(memory.has(5, {3}));
  EXPECT_FALSE(memory.has(4, {4}));
  EXPECT_TRUE(memory.rows(Samples{4, 5}, {4}, at::kCPU)
                  .equal(at::tensor({0.F, 1.F}).view({2, 1}).expand({2, 4})));
}

TEST(SampleMemory, TakesTheLastOfASampleNamedTwice) {
  SampleMemory memory(at::kFloat);
  memory.keep(Samples{5, 6, 5}, at::arange(3).to(at::kFloat));
  EXPECT_TRUE(memory.rows(Samples{5, 6}, {}, at::kCPU).equal(at::tensor({2.F, 1.F})));
}

TEST(SampleMemory, KeepsWhatWasWhereAValueIsNotFinite) {
  SampleMemory memory(at::kFloat);
  const float inf = std::numeric_limits<float>::infinity();
  memory.keep(Samples{1}, at::tensor({1.F, inf}).view({1, 2}));
  memory.keep(Samples{1}, at::tensor({std::nanf(""), 2.F}).view({1, 2}));
  EXPECT_TRUE(memory.rows(Samples{1}, {2}, at::kCPU).equal(at::tensor({1.F, 2.F}).view({1, 2})));
}

TEST(SampleMemory, KeepsHalvesThatSaturate) {
  SampleMemory memory(at::kHalf);
  memory.keep(Samples{1}, at::tensor({0.1F, -1e6F}).view({1, 2}));
  EXPECT_TRUE(memory.rows(Samples{1}, {2}, at::kCPU)
                  .equal(at::tensor({0.0999755859375F, -65504.F}).view({1, 2})));
  EXPECT_EQ(memory.state().back().first, "rows.2");
  EXPECT_EQ(memory.state().back().second.scalar_type(), at::kHalf);
}

TEST(SampleMemory, GoesOnFromItsState) {
  SampleMemory memory(at::kFloat), other(at::kFloat);
  memory.keep(Samples{9, 2, 7}, at::randn({3, 4}));
  memory.keep(Samples{2}, at::randn({1, 5}));
  other.restore(memory.state());
  for (const std::int64_t size : {4, 5})
    EXPECT_TRUE(other.rows(Samples{2, 9, 7, 1}, {size}, at::kCPU)
                    .equal(memory.rows(Samples{2, 9, 7, 1}, {size}, at::kCPU)));
  NamedTensors broken = memory.state();
  broken[1].second = broken[1].second.narrow(0, 0, 1);
  EXPECT_THROW(other.restore(broken), Error);
  broken.pop_back();
  EXPECT_THROW(other.restore(broken), Error);
}

}  // namespace
}  // namespace pipewright::testing
