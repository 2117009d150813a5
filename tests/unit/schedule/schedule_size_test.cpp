// SPDX-License-Identifier: Apache-2.0
// Schedules that no memory holds are refused before they are made.
#include "core/schedule/schedule_size.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

TEST(ScheduleSize, IsRefusedWithActionsAndBytes) {
  const PipelineShape shape{.stages = 4096, .microbatches = 1 << 20};
  try {
    check_schedule_size(shape, 1'000'000);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    const std::string text = error.what();
    EXPECT_NE(text.find("at least 8589934.59 G actions (4096 stages, 1 replica, 1,048,576 "
                        "micro-batches, 1,000,000 mini-batches"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(" GiB"), std::string::npos);
  }
}

TEST(ScheduleSize, CountsNoMoreThanASchemeMakes) {
  const PipelineShape shape{.stages = 3, .microbatches = 4, .minibatches = 5, .training = false};
  std::size_t actions = 0;
  for (const auto& worker : evaluation_schedule(shape).workers) actions += worker.size();
  EXPECT_EQ(actions, 3u * 4 * 5) << "an evaluation is forwards only";
  EXPECT_NO_THROW(check_schedule_size(shape, 5));
}

TEST(ScheduleSize, MoreActionsThanCanBeNumberedAreRefusedOnAnyMachine) {
  const PipelineShape shape{.stages = 1};
  EXPECT_THROW(check_schedule_size(shape, std::int64_t{1} << 31, 1), Error);
}

}  // namespace
}  // namespace pipewright
