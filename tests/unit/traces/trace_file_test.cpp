// SPDX-License-Identifier: Apache-2.0
// Traces of runs are read back as they were written.
#include "core/traces/trace_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/drawing/render.h"
#include "core/schedule/builders.h"
#include "core/simulation/simulate.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

class TraceFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  MeasuredTrace read(const std::string& text) const {
    write_file(folder_ / "trace.json", text);
    return read_trace(folder_ / "trace.json");
  }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      return error.what();
    }
    return "was read";
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

Schedule traced_schedule() {
  return pipeline_schedule(
      {.stages = 3, .replicas = 2, .microbatches = 2, .minibatches = 2, .placement = {0, 1, 0}},
      {.flush = true});
}

Spans spans_of(const Schedule& schedule) {
  return simulate(prove(schedule), equal_costs(3, 0.001), ideal_hardware(4), {.memory = false})
      .spans;
}

TEST_F(TraceFile, ComesBackWithItsActionsAndTimes) {
  const Schedule schedule = traced_schedule();
  Spans spans = spans_of(schedule);
  spans[0][0].encoding = 0.0000125;
  spans[0][0].sending = 0.000000001;
  const MeasuredTrace trace = read(render_measured_trace(prove(schedule), spans, "threads"));
  EXPECT_FALSE(trace.in_turns);
  EXPECT_EQ(trace.proved.schedule.shape, schedule.shape);
  EXPECT_EQ(trace.proved.schedule.workers, schedule.workers);
  EXPECT_EQ(trace.proved.schedule.learns_from, schedule.learns_from);
  constexpr double kRounding = 1.5e-9;  // begin and length are each rounded to 1 ns, half of it off
  for (std::size_t w = 0; w < spans.size(); ++w)
    for (std::size_t i = 0; i < spans[w].size(); ++i) {
      EXPECT_NEAR(trace.spans[w][i].begin, spans[w][i].begin, kRounding);
      EXPECT_NEAR(trace.spans[w][i].end, spans[w][i].end, kRounding);
      EXPECT_NEAR(trace.spans[w][i].encoding, spans[w][i].encoding, kRounding);
      EXPECT_NEAR(trace.spans[w][i].sending, spans[w][i].sending, kRounding);
    }
  EXPECT_TRUE(read(render_measured_trace(prove(schedule), spans, "serial")).in_turns);
}

TEST_F(TraceFile, ShowsWaitsForOtherWorkersAsSlices) {
  const Schedule schedule = evaluation_schedule({.stages = 2});
  const std::string trace = render_measured_trace(prove(schedule), {{{0, 2}}, {{3, 4}}}, "threads");
  const std::string wait =
      R"({"name":"waits for worker 0","cat":"wait","ph":"X","dur":3000000,"pid":0,"tid":1,"ts":0})";
  EXPECT_NE(trace.find(wait), std::string::npos) << trace;
  const std::string turns = render_measured_trace(prove(schedule), {{{0, 2}}, {{3, 4}}}, "serial");
  EXPECT_EQ(turns.find("waits"), std::string::npos) << "in turns nobody waits";
}

TEST_F(TraceFile, IsRefusedIfItWasNotMeasuredOrIsDamaged) {
  const Schedule schedule = traced_schedule();
  EXPECT_NE(refusal(render_trace(prove(schedule))).find("it was not measured"), std::string::npos);
  std::string text = render_measured_trace(prove(schedule), spans_of(schedule), "threads");
  const auto without = [&](const std::string& part, const std::string& instead) {
    std::string damaged = text;
    damaged.replace(damaged.find(part), part.size(), instead);
    return refusal(damaged);
  };
  EXPECT_NE(without("\"stage\":1", "\"stage\":-1").find("'args.stage'"), std::string::npos);
  EXPECT_NE(without("\"dur\":1000", "\"dur\":9000000").find("overlap"), std::string::npos);
  EXPECT_NE(without("\"cat\":\"forward\"", "\"cat\":\"other\"").find("no schedule"),
            std::string::npos);
  EXPECT_NE(refusal("{").find("trace.json"), std::string::npos);
  EXPECT_THROW(read_trace(folder_ / "absent.json"), Error);
}

}  // namespace
}  // namespace pipewright
