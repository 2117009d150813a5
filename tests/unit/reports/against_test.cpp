// SPDX-License-Identifier: Apache-2.0
// Differences of the cells of a table from one scheme: which are compared, and what is said.
#include "core/reports/against.h"

#include "core/config/json.h"
#include "core/reports/results_json.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class Against : public RunFolders {
 protected:
  /// Runs of a scheme with seeds 1, 2, …; "nan" stands for one that diverged.
  void add(const std::string& scheme, const std::vector<std::string>& values, int stages = 2) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string keys = concat("{scheme.name: ", scheme, ", pipeline.stages: ", stages,
                                      ", train.seed: ", i + 1, "}");
      const std::string folder = concat(scheme, "-", stages, "-", i + 1);
      const bool diverged = values[i] == "nan";
      runs_.push_back(run(folder, scheme, diverged ? "failed" : "done",
                          concat("{train: {seed: ", i + 1, "}}"),
                          diverged ? "" : accuracies({values[i]}), keys));
      if (diverged) runs_.back().exit_code = 6;
    }
  }

  Table table(const std::string& section = "{rows: scheme.name, columns: pipeline.stages}") const {
    return make_table(read_table_spec(parse_yaml("table: " + section, "t.yaml")), runs_);
  }
  std::string said(const std::string& name) const {
    const Table all = table();
    return print_differences(name, all.metric, differences_from(name, all, runs_),
                             TableFormat::Csv);
  }

  std::vector<RunRecord> runs_;
};

TEST_F(Against, EachRowIsComparedInPairsWithThatOfTheName) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  add("xpipe", {"0.60", "0.52", "0.68"});
  const std::string text = said("pipedream");
  // Paired by seed: 0.10, 0.09, 0.11, mean 0.10 ± 4.3027 · 0.01 / √3 = 0.0248; and −0.10, −0.09,
  // −0.11. With two degrees of freedom p = 1 − t / √(t² + 2) with t = 0.1 √3 / 0.01, and Holm's
  // correction doubles the smaller of two equal ones, 0.0033.
  EXPECT_NE(text.find("- gpipe: better. gpipe (80.00) minus pipedream (70.00) is between 7.52 and "
                      "12.48 (95 %, paired over 3 seeds, p 0.0033, by signs 0.25), with Holm's "
                      "correction 0.0066\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("- xpipe: worse. xpipe (60.00) minus pipedream (70.00) is between -12.48 "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("- pipedream"), std::string::npos) << "it is not compared with itself";
}

TEST_F(Against, TiesEqualRunsAndDivergedPairsAreSaid) {
  add("pipedream", {"0.70", "0.60", "0.50"});
  add("gpipe", {"0.60", "0.70", "0.51"});
  add("same", {"0.70", "0.60", "0.50"});
  add("xpipe", {"0.70", "nan", "0.50"});
  const std::string text = said("pipedream");
  EXPECT_NE(text.find("- gpipe: no difference shown. gpipe (60.33) minus"), std::string::npos)
      << text;
  EXPECT_NE(text.find("- same: equal in all pairs. "), std::string::npos) << text;
  EXPECT_NE(text.find("- xpipe: not compared. 1 of 3 runs of xpipe diverged\n"), std::string::npos)
      << text;
}

TEST_F(Against, OfALossTheSmallerIsBetter) {
  for (const char* scheme : {"gpipe", "pipedream"})
    for (int seed = 1; seed <= 3; ++seed) {
      const double loss = seed + (*scheme == 'g' ? 0.1 * seed : 1);
      runs_.push_back(run(concat(scheme, seed), scheme, "done",
                          concat("{train: {seed: ", seed, "}}"),
                          concat("epoch,test_loss\n0,", loss, "\n"),
                          concat("{scheme.name: ", scheme, ", train.seed: ", seed, "}")));
    }
  const Table all = table("{rows: scheme.name, metric: test_loss}");
  const auto differences = differences_from("pipedream", all, runs_);
  EXPECT_NE(print_differences("pipedream", all.metric, differences, TableFormat::Markdown)
                .find("- gpipe: better. "),
            std::string::npos);
}

TEST_F(Against, CellsAreComparedWithinTheirColumnAndOtherKeysOfTheirRow) {
  for (const int stages : {2, 4}) {
    add("gpipe", {"0.8", "0.7", "0.9"}, stages);
    add("pipedream", {"0.7", "0.6", "0.8"}, stages);
  }
  const auto names = [&](const std::string& section, const char* name) {
    std::vector<std::string> pairs;
    for (const ClaimTest& test : differences_from(name, table(section), runs_))
      pairs.push_back(concat(test.of, " − ", test.minus));
    return pairs;
  };
  using Names = std::vector<std::string>;
  const Names wanted{"gpipe, stages 2 − pipedream, stages 2",
                     "gpipe, stages 4 − pipedream, stages 4"};
  EXPECT_EQ(names("{rows: scheme.name, columns: pipeline.stages}", "pipedream"), wanted);
  EXPECT_EQ(names("{rows: [scheme.name, pipeline.stages]}", "pipedream"), wanted);
  EXPECT_EQ(
      names("{rows: pipeline.stages, columns: scheme.name}", "pipedream"),
      (Names{"stages 2, gpipe − stages 2, pipedream", "stages 4, gpipe − stages 4, pipedream"}));
}

TEST_F(Against, AnUnknownNameIsRefusedWithTheNearest) {
  add("pipedream", {"0.7"});
  EXPECT_NE(
      error_text([&] { said("pipedreem"); })
          .find("--against: no row or column of the table is called 'pipedreem'; did you mean "
                "'pipedream'?"),
      std::string::npos);
}

TEST_F(Against, JsonHasTheNumbersOfEachDifference) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  const Table all = table();
  const Value json =
      parse_json(results_json(all, {}, differences_from("pipedream", all, runs_)), "x.json");
  const Value* differences = json.find("against");
  ASSERT_NE(differences, nullptr);
  ASSERT_EQ(differences->items.size(), 1u);
  EXPECT_EQ(differences->items[0].find("verdict")->text, "more");
  EXPECT_EQ(differences->items[0].find("wins")->integer, 3);
}

}  // namespace
}  // namespace pipewright
