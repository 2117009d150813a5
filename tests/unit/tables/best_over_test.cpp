// SPDX-License-Identifier: Apache-2.0
// Each scheme at its best value of a key: chosen on held-out samples, never on what is shown.
#include "core/tables/best_over.h"
#include "core/tables/table.h"

#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class BestOver : public RunFolders {
 protected:
  /// A run with an accuracy, "" for one that is not done. `held_out`: of so many held-out samples.
  void add(const std::string& scheme, const std::string& lr, int held_out, int seed,
           const std::string& accuracy) {
    const std::string keys = concat("{scheme.name: ", scheme, ", optimizer.lr: ", lr,
                                    ", loader.validation: ", held_out, ", train.seed: ", seed, "}");
    const bool done = !accuracy.empty();
    runs_.push_back(run(concat("run-", runs_.size()), scheme, done ? "done" : "failed",
                        concat("{loader: {validation: ", held_out, "}, train: {seed: ", seed, "}}"),
                        done ? accuracies({accuracy}) : "", keys));
  }

  Table table(const std::string& more = {}) const {
    const std::string section = concat("table: {best_over: optimizer.lr", more, "}");
    return make_table(read_table_spec(parse_yaml(section, "t.yaml")), runs_);
  }
  std::vector<double> values(const Table& all, std::size_t row) const {
    return all.cells.at(row).at(0).values;
  }

  std::vector<RunRecord> runs_;
};

TEST_F(BestOver, TheBestOnHeldOutSamplesIsShownWithItsTestResults) {
  // The test results alone would have chosen the other rate for both.
  add("gpipe", "0.1", 200, 1, "0.8");
  add("gpipe", "0.2", 200, 1, "0.7");
  add("gpipe", "0.1", 0, 1, "0.5");
  add("gpipe", "0.2", 0, 1, "0.6");
  add("xpipe", "0.1", 200, 1, "0.3");
  add("xpipe", "0.2", 200, 1, "0.4");
  add("xpipe", "0.1", 0, 1, "0.9");
  add("xpipe", "0.2", 0, 1, "0.2");
  const Table all = table();
  EXPECT_EQ(all.row_names, (std::vector<std::vector<std::string>>{{"gpipe"}, {"xpipe"}}));
  EXPECT_EQ(values(all, 0), std::vector<double>{0.5});
  EXPECT_EQ(values(all, 1), std::vector<double>{0.2});
  EXPECT_EQ(all.cells[0][0].chosen, "0.1");
  EXPECT_EQ(all.choices,
            (std::vector<std::string>{"gpipe: 0.1 (80.00, 1 run); the smallest of 2 tried",
                                      "xpipe: 0.2 (40.00, 1 run); the largest of 2 tried"}));
  EXPECT_EQ(all.mixed, std::vector<std::string>());
  const std::string page = print_table(all, TableFormat::Markdown);
  EXPECT_NE(page.find("50.00 (1) at 0.1 |"), std::string::npos) << page;
  EXPECT_NE(page.find("from 2 runs."), std::string::npos) << page;
  EXPECT_NE(page.find("\n- xpipe: 0.2 (40.00, 1 run); "), std::string::npos) << page;
  const std::string csv = print_table(all, TableFormat::Csv);
  EXPECT_NE(csv.find(",differs,chosen\n"), std::string::npos);
  EXPECT_NE(csv.find(",0.1\n"), std::string::npos);
}

TEST_F(BestOver, WithoutTestResultsWhatChoseIsShownAndCalledThat) {
  add("gpipe", "0.1", 200, 1, "0.8");
  add("gpipe", "0.2", 200, 1, "0.7");
  const Table all = table();
  EXPECT_EQ(values(all, 0), std::vector<double>{0.8});
  EXPECT_NE(all.caption.find("those on the same samples, and so are too good"), std::string::npos);
}

TEST_F(BestOver, WithoutHeldOutSamplesItIsRefusedWithTheWayOut) {
  add("gpipe", "0.1", 0, 1, "0.8");
  add("gpipe", "0.2", 0, 1, "0.7");
  const std::string text = error_text([&] { table(); });
  EXPECT_NE(text.find("t.yaml:1:20: table.best_over: no run holds out training samples"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("sweep loader.validation: [200, 0]"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << "one line";
}

TEST_F(BestOver, AValueWithARunThatIsNotDoneIsNotChosen) {
  add("gpipe", "0.1", 200, 1, "0.8");
  add("gpipe", "0.2", 200, 1, "0.9");
  add("gpipe", "0.2", 200, 2, "");
  EXPECT_EQ(table().cells[0][0].chosen, "0.1");
  runs_.erase(runs_.begin());
  const Table none = table();
  EXPECT_EQ(values(none, 0), std::vector<double>());
  EXPECT_EQ(none.cells[0][0].failed, 1);
  EXPECT_NE(none.choices.at(0).find(": none, because"), std::string::npos);
}

TEST_F(BestOver, OfALossTheSmallestIsBestAndTiesAreNamed) {
  for (const auto& [lr, loss] : {std::pair{"0.1", "0.5"}, {"0.2", "0.25"}, {"0.3", "0.25"}})
    runs_.push_back(run(lr, "x", "done", "{loader: {validation: 10}}",
                        concat("epoch,test_loss\n0,", loss, "\n"),
                        concat("{optimizer.lr: ", lr, "}")));
  const Table all = table(", rows: =all, metric: test_loss");
  EXPECT_EQ(all.choices, std::vector<std::string>{"all: 0.2 (0.25, 1 run); as good: 0.3"});
}

/// A rate with which a run fails was tried, too: nothing needs to be looked for beyond it.
TEST_F(BestOver, AValueAtTheEdgeOfThoseTriedIsNamed) {
  add("gpipe", "0.1", 200, 1, "0.7");
  add("gpipe", "0.2", 200, 1, "0.8");
  EXPECT_EQ(table().choices.at(0), "–: 0.2 (80.00, 1 run); the largest of 2 tried");
  add("gpipe", "0.4", 200, 1, "");
  EXPECT_EQ(table().choices.at(0), "–: 0.2 (80.00, 1 run)");
}

TEST(TriedEdge, IsTheSmallestOrTheLargestOfDistinctNumbers) {
  const std::vector<std::string> tried{"1e-3", "0.01", "0.1", "0.100"};
  EXPECT_EQ(tried_edge("0.001", tried), "the smallest of 3 tried");
  EXPECT_EQ(tried_edge("0.1", tried), "the largest of 3 tried");
  EXPECT_EQ(tried_edge("0.01", tried), "");
}

TEST(TriedEdge, IsBeyondAllThatWereTriedToo) {
  EXPECT_EQ(tried_edge("0.2", {"0.01", "0.1"}), "the largest of 2 tried");
}

TEST(TriedEdge, IsNoneOfOneNumberOrOfWords) {
  EXPECT_EQ(tried_edge("0.1", {"0.1", "0.10"}), "");
  EXPECT_EQ(tried_edge("gpipe", {"gpipe", "pipedream"}), "");
  EXPECT_EQ(tried_edge("0.1", {"0.1", "auto"}), "");
  EXPECT_EQ(tried_edge("0.1", {}), "");
}

TEST_F(BestOver, AKeyThatDividesRowsCannotBeChosenFrom) {
  add("gpipe", "0.1", 200, 1, "0.8");
  EXPECT_NE(error_text([&] {
              table(", rows: optimizer.lr");
            }).find("table.best_over: optimizer.lr divides rows or columns, too"),
            std::string::npos);
}

TEST_F(BestOver, PicturesBesideTheTableHaveTheChosenRuns) {
  for (const int held_out : {200, 0})
    for (const char* const lr : {"0.1", "0.2"}) {
      add("gpipe", lr, held_out, 1, lr);
      add("xpipe", lr, held_out, 1, "0.5");
    }
  const Table all = table();
  const auto described = [&](const std::vector<TableKey>& keys) {
    std::vector<std::string> texts;
    for (const RunRecord& run : runs_beside(all, keys, runs_))
      texts.push_back(concat(run.label, " ", to_json(*run.varied.find("optimizer.lr")), " ",
                             to_json(*run.varied.find("loader.validation"))));
    return texts;
  };
  EXPECT_EQ(described({{"label", {}}}), (std::vector<std::string>{"xpipe 0.1 0", "gpipe 0.2 0"}));
  EXPECT_EQ(described({{"optimizer.lr", {}}}),
            (std::vector<std::string>{"gpipe 0.1 0", "xpipe 0.1 0", "gpipe 0.2 0", "xpipe 0.2 0"}))
      << "a picture over the key tells its values apart, and does not mix kinds of samples";
  const Table plain = make_table(
      read_table_spec(parse_yaml("table: {rows: [label, optimizer.lr]}", "t.yaml")), runs_);
  EXPECT_EQ(runs_beside(plain, {}, runs_).size(), runs_.size());
}

}  // namespace
}  // namespace pipewright
