// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_store.h"

#include "core/records/sqlite.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class RunStore : public RunFolders {
 protected:
  RunStore() {
    run("PD-1", "PD", "done", "{model: {name: mlp}}", accuracies({"0.5", "0.75"}),
        "{train.seed: 1}");
    run("PD-2", "PD", "failed", "{model: {name: mlp}}", {}, "{train.seed: 2}");
  }

  Database open() const { return Database(root_ / "results.sqlite"); }

  /// Everything in the store, as text.
  std::string content() const {
    Database database = open();
    std::string text;
    Statement runs(
        database,
        "SELECT folder, label, state, digest, error, varied, config FROM runs ORDER BY folder");
    while (runs.step())
      for (int column = 0; column < 7; ++column) text += runs.text(column) + "\n";
    Statement epochs(database, "SELECT * FROM epochs ORDER BY folder, epoch, metric");
    while (epochs.step())
      text += concat(epochs.text(0), " ", epochs.integer(1), " ", epochs.text(2), " ",
                     epochs.number(3), "\n");
    return text;
  }
};

TEST_F(RunStore, AnswersQueriesAboutRunsAndEpochs) {
  EXPECT_EQ(rebuild_run_store(root_), 2u);
  Database database = open();
  Statement query(database,
                  "SELECT runs.label, varied, value FROM runs JOIN epochs USING (folder) "
                  "WHERE state = 'done' AND metric = ? AND epoch = ?");
  query.bind(std::string("test_accuracy")).bind(std::int64_t{1});
  ASSERT_TRUE(query.step());
  EXPECT_EQ(query.text(0), "PD");
  EXPECT_EQ(query.text(1), R"({"train.seed":1})");
  EXPECT_EQ(query.number(2), 0.75);
  EXPECT_FALSE(query.step());
}

TEST_F(RunStore, ResultsAreTodaysPointsWithTheirKeysAndLastNumbers) {
  const auto today = [&](const std::string& name, const std::string& keys) {
    RunRecord record = read_run(root_ / name);
    record.varied = parse_yaml(keys, "varied");
    return record;
  };
  run("GP-3", "GP", "interrupted", "{model: {name: mlp}}", accuracies({"0.9"}));
  const std::vector<RunRecord> points{
      today("GP-3", "{scheme.name: gpipe, train.seed: 3}"),
      today("PD-1", "{scheme.name: pipe\"dream, train.seed: 1, optimizer.lr: 0.5}")};
  EXPECT_EQ(rebuild_run_store(root_, points), 3u);
  Database database = open();
  Statement results(database,
                    "SELECT point, folder, state, \"scheme.name\", \"train.seed\", "
                    "\"optimizer.lr\", epochs, test_accuracy, test_accuracy IS NULL FROM results");
  ASSERT_TRUE(results.step());
  EXPECT_EQ(results.integer(0), 1);
  EXPECT_EQ(results.text(2), "interrupted");
  EXPECT_EQ(results.integer(8), 1) << "a run that is not done has no number";
  ASSERT_TRUE(results.step());
  EXPECT_EQ(results.text(1), "PD-1");
  EXPECT_EQ(results.text(3), "pipe\"dream");
  EXPECT_EQ(results.integer(4), 1);
  EXPECT_EQ(results.number(5), 0.5);
  EXPECT_EQ(results.integer(6), 2);
  EXPECT_EQ(results.number(7), 0.75);
  EXPECT_FALSE(results.step()) << "PD-2 is left from another version of the file";

  Statement leftover(database, "SELECT folder FROM runs WHERE point IS NULL");
  ASSERT_TRUE(leftover.step());
  EXPECT_EQ(leftover.text(0), "PD-2");
  Statement curves(database, "SELECT folder, epoch, test_accuracy FROM curves");
  ASSERT_TRUE(curves.step());
  EXPECT_EQ(curves.text(0), "PD-1");
  EXPECT_EQ(curves.number(2), 0.5);
  ASSERT_TRUE(curves.step());
  EXPECT_EQ(curves.integer(1), 1);
  EXPECT_FALSE(curves.step());
}

TEST_F(RunStore, SaysWhenRunsBeganAndEnded) {
  put("PD-1/run.json",
      R"({"state": "done", "started": "2026-09-25T10:00:00Z", "finished": "2026-09-25T10:02:30Z"})");
  rebuild_run_store(root_);
  Database database = open();
  Statement runs(database,
                 "SELECT unixepoch(finished) - unixepoch(started), started IS NULL FROM runs "
                 "ORDER BY folder");
  ASSERT_TRUE(runs.step());
  EXPECT_EQ(runs.integer(0), 150);
  ASSERT_TRUE(runs.step());
  EXPECT_EQ(runs.integer(1), 1) << "PD-2 has not recorded it";
}

TEST_F(RunStore, DeletingItLosesNothing) {
  rebuild_run_store(root_);
  const std::string before = content();
  ASSERT_NE(before.find("PD-1 1 test_accuracy 0.75"), std::string::npos) << before;
  std::filesystem::remove(root_ / "results.sqlite");
  rebuild_run_store(root_);
  EXPECT_EQ(content(), before);
}

TEST_F(RunStore, ReplacesWhatWasThereAndLeavesNoTemporaryFile) {
  put("results.sqlite", "not a database");
  rebuild_run_store(root_);
  rebuild_run_store(root_);
  EXPECT_FALSE(content().empty());
  for (const auto& entry : std::filesystem::directory_iterator(root_))
    EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(RunStore, KeepsTextsWhateverTheyHold) {
  run("odd", "x'); DROP TABLE runs; --", "done", "{name: x}");
  rebuild_run_store(root_);
  EXPECT_NE(content().find("x'); DROP TABLE runs; --"), std::string::npos);
}

TEST_F(RunStore, EpochsThatWereNotEvaluatedHaveNoRow) {
  run("gaps", "gaps", "done", "{name: x}", accuracies({"", "0.5"}));
  rebuild_run_store(root_);
  EXPECT_EQ(content().find("gaps 0 test_accuracy"), std::string::npos);
  EXPECT_NE(content().find("gaps 1 test_accuracy 0.5"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
