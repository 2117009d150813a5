// SPDX-License-Identifier: Apache-2.0
// What may cross an edge at most, by shapes alone.
#include "core/measuring/boundaries.h"

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "core/training/assembly.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// Of translations, batches of 8 with 5 tokens on either side and 6 values a token: a target may be
/// as long as the longest source, also where nothing of the source crosses any more.
TEST(Boundaries, LeaveRoomForTargetsAsLongAsTheLongestSource) {
  Laboratory laboratory(
      "{model: {name: gnmt8, vocabulary: 11, width: 6, tokens: 5}, dataset: {name: synthetic, "
      "train: 16, test: 8}, loader.batch_size: 8, pipeline.stages: 4, pipeline.balance: layers}");
  const Plan& plan = laboratory.plan();
  const auto meta = at::TensorOptions(at::kLong).device(at::kMeta);
  const EdgeValues most = most_values(plan);
  const auto longest =
      boundaries(*plan.experiment, {at::empty({8, 5}, meta), at::empty({8, 5}, meta)});
  ASSERT_EQ(most.size(), 3u);
  for (std::size_t edge = 0; edge < most.size(); ++edge)
    for (const at::Tensor& tensor : longest[edge]) EXPECT_LE(tensor.numel(), most[edge]) << edge;
}

}  // namespace
}  // namespace pipewright::test
