// SPDX-License-Identifier: Apache-2.0
// The metric against settings and against time.
#include "core/page/comparisons.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/tables/default_layout.h"

namespace pipewright {
namespace {

/// A finished run of two epochs.
RunRecord trained(const std::string& label, int stages, double accuracy, double seconds) {
  RunRecord run;
  run.state = "done";
  run.label = label;
  run.varied = Value::mapping();
  run.varied.at_or_add("label") = Value::of(label);
  run.varied.at_or_add("pipeline.stages") = Value::of(stages);
  run.config = parse_yaml(concat("{scheme: {name: gpipe}, pipeline: {stages: ", stages,
                                 ", replicas: 1, placement: [], execution: threads}}"),
                          "x.yaml");
  run.columns = {"epoch", "test_accuracy", "seconds"};
  run.epochs = {{0, 0.1, seconds / 2}, {1, accuracy, seconds / 2}};
  return run;
}

TableSpec labelled_spec() {
  TableSpec spec = read_table_spec(parse_yaml("table: {rows: label}", "x.yaml"));
  return spec;
}

TEST(Comparisons, TheFrontIsWhatNoOtherBeatsInBoth) {
  const std::vector<RunRecord> runs{trained("slow and good", 2, 0.9, 10),
                                    trained("beaten", 2, 0.7, 5),
                                    trained("fast and fair", 2, 0.8, 4)};
  const TableSpec spec = labelled_spec();
  const auto front = front_of(spec, make_table(spec, runs), runs);
  ASSERT_TRUE(front);
  std::vector<std::string> efficient;
  for (const TradeoffRow& row : front->rows)
    if (row.efficient) efficient.push_back(row.name);
  EXPECT_EQ(efficient, (std::vector<std::string>{"fast and fair", "slow and good"}));
  EXPECT_EQ(front->rows[0].time, 4) << "of both epochs together";
  EXPECT_EQ(front->unit, "s");
}

/// One thread that plays all workers takes as long as their work together, whatever the scheme.
TEST(Comparisons, SecondsInWhichOneThreadPlayedAllWorkersHaveNoFront) {
  std::vector<RunRecord> runs{trained("a", 2, 0.9, 10), trained("b", 2, 0.8, 5)};
  const TableSpec spec = labelled_spec();
  ASSERT_TRUE(front_of(spec, make_table(spec, runs), runs));
  runs[1].config = parse_yaml(
      "{pipeline: {stages: 2, replicas: 1, placement: [], execution: serial}}", "x.yaml");
  EXPECT_FALSE(front_of(spec, make_table(spec, runs), runs));
  runs[1].config = parse_yaml(
      "{pipeline: {stages: 1, replicas: 1, placement: [], execution: serial}}", "x.yaml");
  EXPECT_TRUE(front_of(spec, make_table(spec, runs), runs)) << "one worker is one thread";
}

/// Schemes that have one value each of a setting differ in more than it.
TEST(Comparisons, ASettingOfWhichEachLineHasOneValueHasNoChart) {
  const std::vector<RunRecord> runs{trained("a", 2, 0.9, 1), trained("b", 4, 0.8, 1)};
  const TableSpec spec = labelled_spec();
  EXPECT_TRUE(charts_against(spec, make_table(spec, runs), runs).empty());
}

TEST(Comparisons, OneCellHasNoFront) {
  const std::vector<RunRecord> runs{trained("a", 2, 0.9, 10), trained("a", 2, 0.8, 10)};
  const TableSpec spec = labelled_spec();
  EXPECT_FALSE(front_of(spec, make_table(spec, runs), runs));
}

TEST(Comparisons, TheMetricStandsAgainstWorkersAndNotAgainstStagesAgain) {
  const std::vector<RunRecord> runs{trained("a", 2, 0.9, 1), trained("a", 4, 0.8, 1),
                                    trained("b", 2, 0.7, 1), trained("b", 4, 0.6, 1)};
  const TableSpec spec = labelled_spec();
  const std::vector<Chart> charts = charts_against(spec, make_table(spec, runs), runs);
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].title, "test_accuracy against workers");
  ASSERT_EQ(charts[0].lines.size(), 2u);
  EXPECT_EQ(charts[0].lines[0].points.at(1).x, 4);
  EXPECT_DOUBLE_EQ(charts[0].lines[0].points.at(1).y, 80);
}

TEST(Comparisons, WithoutAFinishedRunThereAreNone) {
  std::vector<RunRecord> runs{trained("a", 2, 0.9, 1), trained("a", 4, 0.8, 1)};
  for (RunRecord& run : runs) run.state = "failed";
  const TableSpec spec = labelled_spec();
  const Table table = make_table(spec, runs);
  EXPECT_TRUE(charts_against(spec, table, runs).empty());
  EXPECT_FALSE(front_of(spec, table, runs));
}

TEST(Comparisons, ChartsDoNotPoolWhatTheTableTellsApart) {
  std::vector<RunRecord> runs;
  for (const int stages : {2, 4})
    for (const int rate : {1, 2}) {
      for (const double accuracy : {0.1, 0.2})
        runs.push_back(trained("a", stages, accuracy * stages, 1));
      for (RunRecord* const run : {&runs.back(), &runs.back() - 1})
        run->varied.at_or_add("optimizer.lr") = Value::of(rate);
    }
  const TableSpec spec =
      laid_out(read_table_spec(parse_yaml("table: {metric: test_accuracy}", "x.yaml")), runs);
  ASSERT_EQ(spec.columns.size(), 1u);
  const std::vector<Chart> charts = charts_against(spec, make_table(spec, runs), runs);
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[1].title, "test_accuracy against optimizer.lr");
  ASSERT_EQ(charts[1].lines.size(), 2u) << "one for each number of stages";
  for (const ChartLine& line : charts[1].lines)
    for (const ChartPoint& point : line.points) EXPECT_EQ(point.runs, 2) << line.name;
  EXPECT_EQ(charts[1].note.find("mix"), std::string::npos) << charts[1].note;
}

TEST(Comparisons, WhatDivergedInSomeRunsIsNotEfficientAndBeatsNone) {
  std::vector<RunRecord> runs{trained("slow", 2, 0.8, 10), trained("lucky", 2, 0.9, 5),
                              trained("lucky", 2, 0.1, 5)};
  runs[2].state = "failed";
  runs[2].exit_code = 6;
  const TableSpec spec = labelled_spec();
  const auto front = front_of(spec, make_table(spec, runs), runs);
  ASSERT_TRUE(front);
  EXPECT_EQ(front->rows.at(0).name, "lucky");
  EXPECT_EQ(front->rows[0].diverged, 1u);
  EXPECT_EQ(front->rows[0].failed, 1u);
  EXPECT_FALSE(front->rows[0].efficient);
  EXPECT_TRUE(front->rows.at(1).efficient) << "a mean of survivors beats nobody";
}

}  // namespace
}  // namespace pipewright
