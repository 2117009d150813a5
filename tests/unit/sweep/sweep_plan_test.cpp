// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_plan.h"

#include "core/sweep/sweep_runner.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

Value document(const std::string& sweep) {
  return parse_yaml("name: x\nmodel: {name: mlp, widths: [4, 4, 4, 4, 2]}\nsweep: " + sweep + "\n",
                    "x.yaml");
}

TEST(SweepPlan, RunsOfOneLabelAreToldApartByWhatDiffers) {
  const Value sweep = document(
      "{points: [{label: PD, scheme: {name: pipedream}}, {label: GP, scheme: {name: gpipe}}], "
      "grid: "
      "{train.seed: [1, 2]}}");
  EXPECT_EQ(run_titles(expand_sweep(sweep)),
            (std::vector<std::string>{"PD seed 1", "PD seed 2", "GP seed 1", "GP seed 2"}));
}

TEST(SweepPlan, AKeyThatOnlySomeRunsOfALabelHaveTellsThemApart) {
  const Value sweep = document(
      "{points: [{label: a, train.epochs: 1}, {label: a, optimizer.lr: 0.5}, {label: b, "
      "train.epochs: 2}]}");
  EXPECT_EQ(run_titles(expand_sweep(sweep)),
            (std::vector<std::string>{"a epochs 1", "a lr 0.5", "b"}));
}

TEST(SweepPlan, RunsWithoutLabelsAreCalledByTheirValues) {
  EXPECT_EQ(
      run_titles(expand_sweep(document("{grid: {scheme.name: [gpipe], train.seed: [1, 2]}}"))),
      (std::vector<std::string>{"gpipe seed 1", "gpipe seed 2"}));
}

TEST(SweepPlan, HasEveryRunWithAllItsDefaults) {
  const std::vector<PlannedRun> runs = plan_sweep(document("{grid: {train.seed: [1, 2]}}"), "out");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].resolved.find_path("train.seed")->integer, 2);
  EXPECT_TRUE(runs[1].resolved.find_path("loader.batch_size").has_value());
  EXPECT_NE(runs[0].digest, runs[1].digest);
  EXPECT_EQ(runs[0].folder.parent_path(), "out");
}

TEST(SweepPlan, AllProblemsOfAllRunsAreReportedEachOnce) {
  const std::string text = error_text([] {
    plan_sweep(document("{points: [{train.epochs: many}, {train.epochs: 1, scheme.namee: x}]}"),
               "out");
  });
  EXPECT_NE(text.find("train.epochs is 'many'; expected a whole number"), std::string::npos)
      << text;
  EXPECT_NE(text.find("unknown option 'scheme.namee'; did you mean 'name'? (run '"),
            std::string::npos)
      << text;
}

TEST(SweepPlan, WhatIsWrongInEveryRunIsSaidOnceWithoutNamingRuns) {
  Value wrong = document("{grid: {train.seed: [1, 2, 3]}}");
  wrong.at_or_add("nam") = Value::of("x");
  const std::string text = error_text([&] { plan_sweep(wrong, "out"); });
  EXPECT_EQ(text, "unknown option 'nam'; did you mean 'name'?");
}

TEST(SweepPlan, ThreadsOfARunCountForTheJobsAtOnce) {
  Value threaded = document("{grid: {train.seed: [1]}}");
  threaded.at_or_add("pipeline") = parse_yaml("{stages: 4, execution: threads, threads: 2}", "p");
  EXPECT_EQ(plan_sweep(threaded, "out")[0].cores, 8);
  threaded.at_or_add("pipeline") = parse_yaml("{stages: 4, threads: 2}", "p");
  EXPECT_EQ(plan_sweep(threaded, "out")[0].cores, 2);
}

TEST(SweepPlan, DefaultJobsAreAtLeastOne) {
  EXPECT_EQ(default_jobs({PlannedRun{{.cores = 1'000'000}}}), 1);
  EXPECT_GE(default_jobs({PlannedRun{{.cores = 1}}}), 1);
}

class SweepRecords : public RunFolders {};

TEST_F(SweepRecords, OfRunsThatAreNotThereHaveTheConfigurationTheyWouldHave) {
  const Value sweep = document("{grid: {train.seed: [1, 2]}}");
  const std::vector<SweepPoint> points = expand_sweep(sweep);
  run(points[0].folder(), "1", "done", "{train: {seed: 1}}", accuracies({"0.5"}));
  const std::vector<RunRecord> records = sweep_records(sweep, root_);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].state, "done");
  EXPECT_EQ(records[1].state, "missing");
  EXPECT_EQ(records[1].digest, plan_sweep(sweep, root_)[1].digest);
  EXPECT_EQ(records[1].config.find_path("train.seed")->integer, 2);
}

TEST_F(SweepRecords, ARunWithOtherOptionsThanPlannedIsShownWithItsOwn) {
  const Value sweep = document("{grid: {train.seed: [1]}}");
  const std::vector<PlannedRun> planned = plan_sweep(sweep, root_);
  const std::string folder = planned[0].folder.filename();
  run(folder, "1", "done", "{train: {seed: 1, epochs: 77}}", accuracies({"0.5"}));
  EXPECT_EQ(records_of(planned)[0].config.find_path("train.epochs")->integer, 77);
  put(folder + "/run.json", R"({"state": "done", "digest": ")" + planned[0].digest + "\"}");
  EXPECT_EQ(records_of(planned)[0].config.find_path("train.epochs")->integer, 10);
}

TEST_F(SweepRecords, OfAFileWithoutASweepIsTheFolderOfItsRun) {
  run("alone", "x", "done", "{name: x}", accuracies({"0.5"}));
  const Value single = parse_yaml("name: x\n", "x.yaml");
  const std::vector<RunRecord> records = sweep_records(single, root_ / "alone");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].state, "done");
}

}  // namespace
}  // namespace pipewright
