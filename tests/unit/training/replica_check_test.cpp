// SPDX-License-Identifier: Apache-2.0
// Replicas that drift apart are noticed, by a single bit of one weight.
#include "core/training/replica_check.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

TEST(ReplicaCheck, FindsASingleBitAndNamesTheStage) {
  for (const char* precision : {"float32", "float64", "bfloat16"}) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, pipeline.stages: 2, pipeline.replicas: 3, "
               "train.precision: ",
               precision, "}"));
    const Plan& plan = laboratory.plan();
    const Stages stages = plan.stages();
    train(plan, stages, Execution::Serial);
    Team alone;
    EXPECT_NO_THROW(check_replicas(plan, alone, stages, 6));
    const at::NoGradGuard no_grad;
    at::Tensor weight = stages[3]->weights().latest().narrow(0, 0, 1);  // stage 1 of replica 1
    weight.copy_(at::nextafter(weight, at::full_like(weight, 9)));
    try {
      check_replicas(plan, alone, stages, 6);
      ADD_FAILURE() << "the difference is not found";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Bug);
      EXPECT_NE(std::string(error.what()).find("replicas 0 and 1 of stage 1"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace pipewright::test
