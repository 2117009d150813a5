// SPDX-License-Identifier: Apache-2.0
#include "core/tables/table.h"

#include <cmath>

#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

TableSpec spec_of(const std::string& table) {
  return read_table_spec(parse_yaml("table: " + table, "t.yaml"));
}

class Tables : public RunFolders {
 protected:
  /// A run of model m with label l whose last accuracy is that; "" for a run that is not done.
  RunRecord cell(const std::string& model, const std::string& label, const std::string& accuracy,
                 const std::string& state = "done") {
    const std::string config = "{model: {name: " + model + "}, pipeline: {stages: 4}}";
    return run(concat("run-", ++count_), label, state, config,
               accuracy.empty() ? "" : accuracies({accuracy}));
  }
  int count_ = 0;
};

TEST_F(Tables, CellHoldsMeanAndSampleDeviationOfItsRuns) {
  const Table table = make_table(spec_of("{rows: model.name, columns: label}"),
                                 {cell("vgg", "PD", "0.90"), cell("vgg", "PD", "0.92"),
                                  cell("vgg", "PD", "0.94"), cell("vgg", "ST", "0.5")});
  EXPECT_EQ(table.column_names, (std::vector<std::string>{"PD", "ST"}));
  EXPECT_DOUBLE_EQ(table.cells[0][0].mean(), 0.92);
  EXPECT_NEAR(table.cells[0][0].std(), 0.02,
              tolerance::kFewOperations);  // n−1: with n it would be 0.0163
  EXPECT_TRUE(std::isnan(table.cells[0][1].std()));
}

/// What a study asks for: a run that diverged is at chance, and neither it nor one at chance
/// learned.
TEST_F(Tables, ARunThatFailedCountsAsTheTableSays) {
  const std::vector<RunRecord> runs{cell("vgg", "PD", "0.90"), cell("vgg", "PD", "0.12"),
                                    cell("vgg", "PD", "", "failed"),
                                    cell("vgg", "PD", "", "missing")};
  const Table table = make_table(spec_of("{failed_as: 0.1, floor: 0.3}"), runs);
  const TableCell& only = table.cells[0][0];
  EXPECT_EQ(only.values, (std::vector<double>{0.90, 0.12, 0.1}));
  EXPECT_EQ(only.seeds.size(), 3u);
  EXPECT_EQ(only.failed, 1);
  EXPECT_EQ(only.learned, 1);
  EXPECT_EQ(make_table(spec_of("{}"), runs).cells[0][0].learned, std::nullopt);
  EXPECT_EQ(make_table(spec_of("{metric: train_loss, floor: 0.5}"), runs).cells[0][0].learned, 2);
  EXPECT_EQ(only.uncounted, 0);
  const std::string text = print_table(table, TableFormat::Markdown);
  EXPECT_NE(text.find("1 of 4 failed, with them 37.33"), std::string::npos);
  EXPECT_NE(text.find("1 missing, 1 of 3 learned"), std::string::npos)
      << "of a run that is missing nobody knows\n"
      << text;
  EXPECT_NE(print_table(make_table(spec_of("{}"), runs), TableFormat::Markdown)
                .find("1 of 4 failed, without them 51.00"),
            std::string::npos);
  // Both are in the unit of the table's metric, and say nothing of one beside it.
  const Table two = make_table(spec_of("{failed_as: 0.1, floor: 0.3, beside: [train_loss]}"), runs);
  const TableCell& beside = two.beside.at(0).cells[0][0];
  EXPECT_EQ(beside.values.size(), 2u);
  EXPECT_EQ(beside.uncounted, 1);
  EXPECT_EQ(beside.learned, std::nullopt);
}

TEST_F(Tables, RowsAndColumnsKeepTheOrderOfTheRuns) {
  const Table table =
      make_table(spec_of("{rows: model.name, columns: label}"),
                 {cell("vgg", "Z", "0.9"), cell("vgg", "A", "0.9"), cell("alexnet", "Z", "0.9")});
  EXPECT_EQ(table.row_names, (std::vector<std::vector<std::string>>{{"vgg"}, {"alexnet"}}));
  EXPECT_EQ(table.column_names, (std::vector<std::string>{"Z", "A"}));
  EXPECT_TRUE(table.cells[1][1].empty());
}

TEST_F(Tables, TheFirstKeyOfRowsAndOfColumnsVariesSlowest) {
  // The runs come as those of a grid whose label varies slowest.
  const std::vector<RunRecord> runs{cell("vgg", "Z", "0.9"), cell("alexnet", "Z", "0.9"),
                                    cell("vgg", "A", "0.9"), cell("alexnet", "A", "0.9")};
  using Names = std::vector<std::vector<std::string>>;
  EXPECT_EQ(make_table(spec_of("{rows: [model.name, label]}"), runs).row_names,
            (Names{{"vgg", "Z"}, {"vgg", "A"}, {"alexnet", "Z"}, {"alexnet", "A"}}));
  EXPECT_EQ(make_table(spec_of("{rows: [label, model.name]}"), runs).row_names,
            (Names{{"Z", "vgg"}, {"Z", "alexnet"}, {"A", "vgg"}, {"A", "alexnet"}}));
  const Table table = make_table(spec_of("{rows: =all, columns: [model.name, label]}"), runs);
  EXPECT_EQ(table.column_names,
            (std::vector<std::string>{"vgg, Z", "vgg, A", "alexnet, Z", "alexnet, A"}));
  EXPECT_EQ(table.cells[0][1].runs, std::vector<std::size_t>{2}) << "cells move with their names";
}

TEST_F(Tables, RunsThatAreNotDoneAreCountedAndNeverBecomeNumbers) {
  RunRecord running = cell("vgg", "e", "0.3");
  running.state = "running";  // of a run whose folder nobody holds it would be read as interrupted
  const Table table = make_table(
      spec_of("{rows: model.name}"),
      {cell("vgg", "a", "0.9"), cell("vgg", "b", "0.1", "failed"), cell("vgg", "c", "", "missing"),
       cell("vgg", "d", "0.2", "interrupted"), running});
  const TableCell& only = table.cells[0][0];
  EXPECT_EQ(only.values, std::vector<double>{0.9});
  EXPECT_EQ(only.failed, 1);
  EXPECT_EQ(only.missing, 1);
  EXPECT_EQ(only.interrupted, 1);
  EXPECT_EQ(only.running, 1);
}

TEST_F(Tables, ADoneRunWithoutTheMetricHasNotFailed) {
  const Table table =
      make_table(spec_of("{rows: model.name, metric: perplexity}"),
                 {cell("vgg", "a", "0.9"), cell("vgg", "b", "0.1", "failed"),
                  run("c", "c", "done", "{model: {name: vgg}}", "epoch,perplexity\n0,5\n")});
  const TableCell& only = table.cells[0][0];
  EXPECT_EQ(only.values, std::vector<double>{5});
  EXPECT_EQ(only.without, 1);
  EXPECT_EQ(only.failed, 1);
}

TEST_F(Tables, LastEpochIsTheLastThatWasEvaluatedBestTheBestOfEachRun) {
  const RunRecord one = run("a", "a", "done", "{name: x}", accuracies({"0.8", "0.9", "0.7", ""}));
  EXPECT_DOUBLE_EQ(metric_of(one, "test_accuracy", "last").value(), 0.7);
  EXPECT_DOUBLE_EQ(metric_of(one, "test_accuracy", "best").value(), 0.9);
  EXPECT_FALSE(metric_of(one, "perplexity", "last").has_value());
}

TEST_F(Tables, BestLossIsTheSmallest) {
  const RunRecord one =
      run("a", "a", "done", "{name: x}", "epoch,test_loss\n0,0.5\n1,0.2\n2,0.4\n");
  EXPECT_DOUBLE_EQ(metric_of(one, "test_loss", "best").value(), 0.2);
}

TEST_F(Tables, CellsWhoseRunsDifferInMoreThanTheirSeedSayInWhat) {
  const auto of = [&](const std::string& folder, const std::string& keys) {
    return run(folder, folder, "done", "{scheme: {name: x}}", accuracies({"0.9"}), keys);
  };
  const std::vector<RunRecord> runs{
      of("a", "{label: a, optimizer.lr: 0.1, pipeline.stages: 2, train.seed: 1}"),
      of("b", "{label: b, optimizer.lr: 0.1, pipeline.stages: 2, train.seed: 2}"),
      of("c", "{label: c, optimizer.lr: 0.2, pipeline.stages: 4, train.seed: 1}")};
  const Table pooled = make_table(spec_of("{rows: scheme.name}"), runs);
  EXPECT_EQ(pooled.mixed, (std::vector<std::string>{"optimizer.lr", "pipeline.stages"}));
  const std::string note =
      "Cells mix optimizer.lr and pipeline.stages: ± is over all runs of a cell, not over seeds "
      "alone; table.rows or table.columns can tell them apart.";
  EXPECT_EQ(mixing_note(pooled), note);
  EXPECT_NE(print_table(pooled, TableFormat::Markdown).find("\n\n" + note + "\n"),
            std::string::npos);
  EXPECT_NE(print_table(pooled, TableFormat::Latex).find("Cells mix optimizer.lr"),
            std::string::npos);
  EXPECT_EQ(print_table(pooled, TableFormat::Csv).find("mix"), std::string::npos);
  // A column of its own for each rate tells the stages apart too; the column beside pools both.
  const Table apart =
      make_table(spec_of("{rows: scheme.name, columns: optimizer.lr, beside: test_loss}"), runs);
  EXPECT_TRUE(apart.mixed.empty());
  EXPECT_EQ(mixing_note(apart),
            "Cells of test_loss mix optimizer.lr and pipeline.stages: ± is over all runs of a "
            "cell, not over seeds alone; table.rows can tell them apart.");
  EXPECT_EQ(mixing_note(make_table(spec_of("{}"), runs)), "");
}

TEST_F(Tables, CaptionSaysHowManyRunsStandBehind) {
  const Table table = make_table(spec_of("{rows: model.name, epoch: best}"),
                                 {cell("vgg", "a", "0.9"), cell("vgg", "b", "", "failed")});
  EXPECT_EQ(table.caption,
            "test_accuracy in percent at the best epoch, mean ± sample standard deviation (number "
            "of runs); from 1 of 2 runs, 1 failed.");
}

TEST_F(Tables, WrongOptionsAreErrorsWithPlaceAndSuggestion) {
  const std::string text = error_text([&] { spec_of("{rowz: label, epoch: lst}"); });
  EXPECT_NE(text.find("t.yaml:1:9: unknown option 'table.rowz'; did you mean 'rows'?"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("t.yaml:1:29: table.epoch is 'lst'; expected last or best; did you mean 'last'?"),
      std::string::npos)
      << text;
}

TEST_F(Tables, KeysAndMetricsThatNoRunHasAreErrorsWithPlaceAndSuggestion) {
  const std::string text = error_text([&] {
    make_table(spec_of("{rows: model.nmae, metric: test_acuracy}"), {cell("vgg", "a", "0.9")});
  });
  EXPECT_NE(text.find("t.yaml:1:15: table.rows: no run has an option 'model.nmae'; did you mean "
                      "'model.name'?"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("t.yaml:1:35: table.metric: no run has a metric 'test_acuracy'; did you mean "
                      "'test_accuracy'?"),
            std::string::npos)
      << text;
}

TEST_F(Tables, DamagedRunFolderIsAFailedRunWithItsReason) {
  run("a", "PD", "done", "{name: x}", "epoch,test_accuracy\n0,many\n");
  const RunRecord record = read_run(root_ / "a");
  EXPECT_EQ(record.state, "failed");
  EXPECT_NE(record.error.find("epochs.csv:2:3: 'many' is not a number"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
