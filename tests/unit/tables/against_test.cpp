// SPDX-License-Identifier: Apache-2.0
// Differences of the cells of a table from one scheme: which are compared, and what is said.
#include "core/tables/against.h"

#include <cmath>

#include "core/config/json.h"
#include "core/tables/results_json.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

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

TEST_F(Against, CellsThatMixSettingsAreNotComparedAndSayWhy) {
  for (const int stages : {2, 4}) {
    add("gpipe", {"0.8", "0.7", "0.9"}, stages);
    add("pipedream", {"0.7", "0.6", "0.8"}, stages);
  }
  add("xpipe", {"0.6", "0.5", "0.7"});
  const Table all = table("{rows: scheme.name, metric: test_accuracy}");
  const auto differences = differences_from("xpipe", all, runs_);
  ASSERT_EQ(differences.size(), 2u);
  for (const ClaimTest& test : differences) EXPECT_FALSE(test.compared);
  const std::string text = print_differences("xpipe", all.metric, differences, TableFormat::Csv);
  EXPECT_NE(text.find("- gpipe: not compared. gpipe mixes pipeline.stages: its runs differ in more "
                      "than their seeds\n"),
            std::string::npos)
      << text;
}

TEST_F(Against, OnlyTheCellsThatMixAreLeftOut) {
  add("gpipe", {"0.8", "0.7", "0.9"});
  add("pipedream", {"0.7", "0.61", "0.79"});
  add("xpipe", {"0.6", "0.5", "0.7"}, 2);
  add("xpipe", {"0.6", "0.5", "0.7"}, 4);
  const Table all = table("{rows: scheme.name}");
  const auto differences = differences_from("pipedream", all, runs_);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_TRUE(differences[0].compared);
  EXPECT_EQ(differences[0].p, differences[0].p_adjusted) << "one comparison needs no correction";
  EXPECT_FALSE(differences[1].compared);
}

TEST_F(Against, AValueOfSeveralKeysIsRefusedUnlessItsKeyIsGiven) {
  const auto add_at = [&](int stages, int microbatches, const char* accuracy) {
    for (int seed = 1; seed <= 3; ++seed)
      runs_.push_back(run(concat(stages, "-", microbatches, "-", seed), "x", "done",
                          concat("{train: {seed: ", seed, "}}"), accuracies({accuracy}),
                          concat("{pipeline.stages: ", stages, ", pipeline.microbatches: ",
                                 microbatches, ", train.seed: ", seed, "}")));
  };
  add_at(2, 4, "0.5");
  add_at(4, 4, "0.6");
  add_at(4, 8, "0.7");
  const auto pairs = [&](const std::string& section, const char* name) {
    std::vector<std::string> names;
    for (const ClaimTest& test : differences_from(name, table(section), runs_))
      names.push_back(concat(test.of, " − ", test.minus));
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string rows = "{rows: [pipeline.stages, pipeline.microbatches]}";
  const std::string columns = "{rows: pipeline.stages, columns: pipeline.microbatches}";
  for (const std::string& section : {rows, columns}) {
    const std::string text = error_text([&] { pairs(section, "4"); });
    EXPECT_NE(text.find("--against: '4' is a value of several keys; give pipeline.stages=4 or "
                        "pipeline.microbatches=4"),
              std::string::npos)
        << text;
  }
  const Names by_stages{"stages 2, microbatches 4 − stages 4, microbatches 4"};
  const Names by_microbatches{"stages 4, microbatches 8 − stages 4, microbatches 4"};
  EXPECT_EQ(pairs(rows, "pipeline.stages=4"), by_stages);
  EXPECT_EQ(pairs(columns, "pipeline.stages=4"), by_stages);
  EXPECT_EQ(pairs(rows, "pipeline.microbatches=4"), by_microbatches);
  EXPECT_EQ(pairs(columns, "pipeline.microbatches=4"), by_microbatches);
  EXPECT_EQ(pairs(columns, "8"), (Names{"stages 4, microbatches 4 − stages 4, microbatches 8"}));
  EXPECT_EQ(pairs(columns, "microbatches 8"), pairs(columns, "8")) << "the title of the column";
}

TEST_F(Against, AColumnOfSeveralKeysIsComparedWithTheOneThatDiffersInTheGivenKey) {
  for (const int stages : {2, 4}) {
    add("gpipe", {"0.8", "0.7", "0.9"}, stages);
    add("pipedream", {"0.7", "0.6", "0.8"}, stages);
  }
  const Table all = table("{rows: =all, columns: [scheme.name, pipeline.stages]}");
  const auto differences = differences_from("pipedream", all, runs_);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[1].of, "all, gpipe, stages 4");
  EXPECT_EQ(differences[1].minus, "all, pipedream, stages 4");
}

TEST_F(Against, HolmsCorrectionTakesAwayWhatOneComparisonWouldShow) {
  add("pipedream", {"0.5", "0.25", "0.75"});
  // Differences of 5, 6, 7 / 64: t = 6 √3 = 10.4, and 2, 3, 6 / 64: t = 3.05, each with two degrees
  // of freedom: p = 1 − t / √(t² + 2).
  add("gpipe", {"0.578125", "0.34375", "0.859375"});
  const double p = 1 - 6 * std::sqrt(3.) / std::sqrt(110.);
  const Table alone = table();
  const ClaimTest one = differences_from("pipedream", alone, runs_).at(0);
  EXPECT_NEAR(one.p, p, tolerance::kHundredOperations);
  EXPECT_EQ(one.p_adjusted, one.p);
  EXPECT_EQ(one.outcome, Outcome::Held);
  for (const char* other : {"xpipe", "spectrain", "lwp", "paci", "hanayo", "zb_v"})
    add(other, {"0.53125", "0.296875", "0.84375"});
  const Table all = table();
  const ClaimTest corrected = differences_from("pipedream", all, runs_).at(0);
  EXPECT_NEAR(corrected.p, p, tolerance::kHundredOperations) << "the p of the comparison itself";
  EXPECT_NEAR(corrected.p_adjusted, 7 * p, tolerance::kHundredOperations)
      << "the smallest of seven";
  EXPECT_EQ(corrected.outcome, Outcome::NotShown);
  EXPECT_NE(said("pipedream").find("- gpipe: no difference shown. "), std::string::npos);
}

TEST_F(Against, TheDifferenceIsThatOfTheRowMinusTheNamedOne) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  const Table all = table();
  const ClaimTest up = differences_from("pipedream", all, runs_).at(0);
  EXPECT_EQ(up.of, "gpipe");
  EXPECT_EQ(up.minus, "pipedream");
  EXPECT_NEAR(up.effect, 0.1, tolerance::kHundredOperations);
  EXPECT_GT(up.interval.low, 0);
  EXPECT_EQ(up.wins, 3u);
  const ClaimTest down = differences_from("gpipe", all, runs_).at(0);
  EXPECT_EQ(down.of, "pipedream");
  EXPECT_EQ(down.minus, "gpipe");
  EXPECT_NEAR(down.effect, -0.1, tolerance::kHundredOperations);
  EXPECT_LT(down.interval.high, 0);
  EXPECT_EQ(down.losses, 3u);
  EXPECT_NE(said("gpipe").find("- pipedream: worse. "), std::string::npos);
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
  add("xpipe", {"0.60", "0.52", "0.68"});
  const Table all = table();
  const Value json =
      parse_json(results_json(all, {}, differences_from("pipedream", all, runs_)), "x.json");
  const Value* differences = json.find("against");
  ASSERT_NE(differences, nullptr);
  ASSERT_EQ(differences->items.size(), 2u);
  const Value &more = differences->items[0], &less = differences->items[1];
  for (const Value* each : {&more, &less}) {
    EXPECT_EQ(each->find("kind")->text, "against");
    EXPECT_EQ(each->find("metric")->text, "test_accuracy");
    EXPECT_EQ(each->find("minus")->text, "pipedream");
    EXPECT_EQ(each->find("n_of")->integer, 3);
    EXPECT_EQ(each->find("n_minus")->integer, 3);
    EXPECT_TRUE(each->find("paired")->flag);
    EXPECT_NEAR(each->find("p_holm")->number, 2 * each->find("p")->number,
                tolerance::kHundredOperations)
        << "the p of both are equal";
  }
  EXPECT_EQ(more.find("of")->text, "gpipe");
  EXPECT_EQ(more.find("verdict")->text, "more");
  EXPECT_NEAR(more.find("mean_of")->number, 0.8, tolerance::kHundredOperations);
  EXPECT_NEAR(more.find("mean_minus")->number, 0.7, tolerance::kHundredOperations);
  EXPECT_NEAR(more.find("effect")->number, 0.1, tolerance::kHundredOperations);
  EXPECT_GT(more.find("interval")->items.at(0).number, 0);
  EXPECT_EQ(more.find("wins")->integer, 3);
  EXPECT_EQ(less.find("of")->text, "xpipe");
  EXPECT_EQ(less.find("verdict")->text, "less");
  EXPECT_NEAR(less.find("effect")->number, -0.1, tolerance::kHundredOperations);
  EXPECT_LT(less.find("interval")->items.at(1).number, 0);
  EXPECT_EQ(less.find("losses")->integer, 3);
}

}  // namespace
}  // namespace pipewright
