// SPDX-License-Identifier: Apache-2.0
// The loss of a mini-batch is the mean over its samples, however these are shared.
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// The loss of the first mini-batch, before anything is learned.
double first_loss(const std::string& shares) {
  Laboratory laboratory(concat(
      "{scheme: {name: gpipe}, train.precision: float64, loader.batch_size: 7, ", shares, "}"));
  const Stages stages = laboratory.plan().stages();
  return flat_losses(train(laboratory.plan(), stages, Execution::Serial)).front();
}

TEST(Losses, OfUnequalMicroBatchesAndReplicasAreMeansOverSamples) {
  const double whole = first_loss("pipeline.microbatches: 1");
  for (const char* shares : {"pipeline.microbatches: 2", "pipeline.microbatches: 4",
                             "pipeline.microbatches: 2, pipeline.replicas: 2",
                             "pipeline.microbatches: 1, pipeline.replicas: 3"})
    EXPECT_NEAR(first_loss(shares), whole, tolerance::kHundredOperations * whole) << shares;
}

}  // namespace
}  // namespace pipewright::test
