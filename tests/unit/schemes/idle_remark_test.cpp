// SPDX-License-Identifier: Apache-2.0
// What is remarked on too few micro-batches, and of which schemes.
#include "core/schedule/remarks.h"

#include <gtest/gtest.h>

#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

std::string remark(const std::string& scheme, int stages, int microbatches) {
  return idle_remark(*SchemeReading(scheme, "{}").scheme,
                     {.stages = stages, .microbatches = microbatches});
}

TEST(IdleRemark, CountsTheSlotsOfGPipesTriangles) {
  EXPECT_EQ(remark("gpipe", 4, 1),
            "1 micro-batch for 4 stages: workers are idle in 75 % of their slots; with "
            "pipeline.microbatches: 8 it would be 27 %");
  EXPECT_EQ(remark("one_f_one_b", 4, 3),
            "3 micro-batches for 4 stages: workers are idle in 50 % of their slots; with "
            "pipeline.microbatches: 8 it would be 27 %");
}

TEST(IdleRemark, IsOfSchemesThatEmptyTheirPipeAndGainByMoreMicroBatches) {
  for (const char* scheme : {"gpipe", "one_f_one_b", "zb_h1"}) EXPECT_NE(remark(scheme, 4, 2), "");
  for (const char* scheme :
       {"model_parallel", "pipedream", "pipedream_2bw", "spectrain", "xpipe", "pipeoptim",
        "pipemare", "delayed_sgd", "paci", "lwp", "features_replay"})
    EXPECT_EQ(remark(scheme, 4, 1), "") << scheme;
}

TEST(IdleRemark, IsAboutWhatFollowsAWarmUp) {
  for (const char* warmup : {"{warmup: 2}", "{warmup: 100}"})
    EXPECT_EQ(idle_remark(*SchemeReading("pipemare", warmup).scheme, {.stages = 4}), "") << warmup;
}

TEST(IdleRemark, IsNotOfEnoughMicroBatchesOrOneStage) {
  EXPECT_EQ(remark("gpipe", 4, 4), "");
  EXPECT_EQ(remark("gpipe", 1, 1), "");
}

}  // namespace
}  // namespace pipewright
