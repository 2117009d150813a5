// SPDX-License-Identifier: Apache-2.0
// Memory over time: the versions and micro-batches that a schedule holds, from its own actions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/registry.h"
#include "core/config/options.h"
#include "core/page/sections.h"

namespace pipewright {
namespace {

ReportSchedule schedule_named(const std::string& name, int stages, int minibatches,
                              std::vector<Skip> skips = {}) {
  const Value options = parse_yaml("{name: " + name + "}", "x.yaml");
  Problems problems;
  Options read(&options, "scheme", problems);
  PipelineShape shape{.stages = stages, .minibatches = minibatches, .skips = std::move(skips)};
  return {.title = name,
          .proved = prove(Registry<Scheme>::instance().find(name)->make(read)->schedule(shape))};
}

/// The largest y of the first line of a chart.
double top_of(const Chart& chart) {
  return std::ranges::max(chart.lines.at(0).points, {}, &ChartPoint::y).y;
}

TEST(MemoryOverTime, PipeDreamHoldsAVersionForEachMiniBatchInFlight) {
  Report report;
  report.schedules = {schedule_named("pipedream", 4, 12)};
  const std::vector<Chart> charts = memory_charts(report);
  ASSERT_EQ(charts.size(), 2u);
  // Stage k of 4 has 4 − k mini-batches in flight and a version for each: 4 + 3 + 2 + 1. The last
  // stage's only version is its newest one.
  EXPECT_EQ(top_of(charts[0]), 10);
  EXPECT_EQ(top_of(charts[1]), 10);
}

TEST(MemoryOverTime, WhatStagesLendEachOtherIsNoVersionOfAStage) {
  Report report;
  report.schedules = {
      schedule_named("pipedream", 4, 12, {{.from = 0, .to = 3, .lent_bytes = 1 << 30}})};
  const Chart versions = memory_charts(report).at(0);
  EXPECT_EQ(top_of(versions), 10);
  for (const ChartPoint& point : versions.lines.at(0).points)
    EXPECT_EQ(point.y, std::floor(point.y));
}

TEST(MemoryOverTime, ModelParallelismHoldsOneVersionAStage) {
  Report report;
  report.schedules = {schedule_named("model_parallel", 4, 6)};
  const std::vector<Chart> charts = memory_charts(report);
  EXPECT_EQ(top_of(charts[0]), 4);
  EXPECT_EQ(top_of(charts[1]), 4) << "all stages keep the one micro-batch until it returns";
}

TEST(MemoryOverTime, WhatCannotBeDrawnIsPassedOver) {
  Report report;
  report.schedules = {{.title = "x", .why_not = "unknown"}};
  EXPECT_EQ(memory_section(report).body, "");
}

TEST(MemoryOverTime, SchedulesHaveTheirColourForAllNumbersOfStages) {
  Report report;
  for (const int stages : {2, 4})
    for (const char* const name : {"gpipe", "pipedream"}) {
      if (stages == 4 && std::string_view(name) == "gpipe") continue;
      report.schedules.push_back(schedule_named(name, stages, 6));
      report.schedules.back().series = name;
    }
  const std::vector<Chart> charts = memory_charts(report);
  ASSERT_EQ(charts.size(), 4u);
  EXPECT_EQ(charts[0].lines[0].look, 0u);
  EXPECT_EQ(charts[0].lines[1].look, 1u);
  EXPECT_EQ(charts[2].lines[0].look, 1u) << "pipedream in four stages";
}

TEST(MemoryOverTime, SchedulesThatAreNotDrawnAreCountedBelowEachChart) {
  Report report;
  for (int i = 0; i < 10; ++i) report.schedules.push_back(schedule_named("gpipe", 2, 4));
  const std::string body = memory_section(report).body;
  const std::string note = "2 schedules more would not be told apart and are left out.";
  const std::size_t first = body.find(note);
  ASSERT_NE(first, std::string::npos) << body;
  EXPECT_NE(body.find(note, first + 1), std::string::npos);
}

}  // namespace
}  // namespace pipewright
