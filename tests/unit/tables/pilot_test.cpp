// SPDX-License-Identifier: Apache-2.0
#include "core/tables/pilot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/statistics/tests.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

/// A planned run of a sweep over schemes and seeds.
RunRecord planned(const std::string& scheme, int seed) {
  RunRecord run;
  run.state = "missing";
  run.label = scheme;
  run.varied = parse_yaml(
      concat("{scheme.name: ", scheme, ", optimizer.lr: 0.1, train.seed: ", seed, "}"), "t.yaml");
  return run;
}

ResultRow row(const std::string& scheme, const std::string& seed, double accuracy,
              const std::string& rate = "0.1") {
  ResultRow row;
  row.label = scheme;
  row.state = "done";
  row.epochs = 1;
  row.settings = {{"optimizer.lr", rate}, {"scheme.name", scheme}, {"train.seed", seed}};
  row.metrics = {{"test_accuracy", {accuracy}}};
  return row;
}

class Pilot : public testing::Test {
 protected:
  Pilot() {
    for (int seed = 1; seed <= 10; ++seed)
      for (const char* scheme : {"gpipe", "pipedream"}) runs_.push_back(planned(scheme, seed));
  }
  std::string text(const std::string& claim, const std::vector<ResultRow>& rows,
                   const std::string& more = "") const {
    const Value document = parse_yaml(concat("{", more,
                                             "sweep: {points: [{label: a}]}, claims: "
                                             "[{say: it is so, ",
                                             claim, "}]}"),
                                      "t.yaml");
    return pilot_text(read_claims(document), read_table_spec(document), runs_, rows);
  }
  std::vector<RunRecord> runs_;
  /// Differences of 1, 2 and 3 points: a standard deviation of one.
  const std::vector<ResultRow> rows_{row("gpipe", "901", 0.51),     row("gpipe", "902", 0.52),
                                     row("gpipe", "903", 0.53),     row("pipedream", "901", 0.5),
                                     row("pipedream", "902", 0.5),  row("pipedream", "903", 0.5),
                                     row("gpipe", "901", 0.9, "1"), row("other", "901", 0.9)};
  const std::string kGpipeAtItsEdge =
      "- WARNING: gpipe: optimizer.lr 0.1 is the smallest of 2 tried by the pilot; a better one "
      "may lie beyond it\n";
};

// Ten pairs find 0.996 standard deviations at 5 % with 80 %.
TEST_F(Pilot, SaysWhichEffectThePlannedSeedsFind) {
  EXPECT_EQ(text("less: [{scheme.name: pipedream}, {scheme.name: gpipe}]", rows_),
            "- it is so: standard deviation 1 points of 3 pairs; 10 seeds find 0.996 points with "
            "80 % probability, and 0.996 points as one of 1 comparison\n" +
                kGpipeAtItsEdge);
}

// t of 9 degrees at 90 % is 1.833; divided by the root of 10, 0.58 standard deviations.
TEST_F(Pilot, WarnsWhereNothingCouldShowThatTwoAreAsGood) {
  const std::string close = "close: [{scheme.name: pipedream}, {scheme.name: gpipe}], within: ";
  EXPECT_NE(text(close + "0.005", rows_).find("WARNING: it can never be shown within 0.5 points"),
            std::string::npos);
  const std::string wide = text(close + "0.006", rows_);
  EXPECT_EQ(wide.find("never be shown"), std::string::npos) << wide;
  EXPECT_NE(wide.find("of two equal means the interval is ±0.58 points"), std::string::npos)
      << wide;
}

/// The seeds of the groups that are compared count, not those of other rows of the sweep; of a mean
/// of groups, those that all its parts have.
TEST_F(Pilot, CountsTheSeedsThatBothGroupsHave) {
  for (int seed = 5; seed <= 10; ++seed)
    std::erase_if(runs_, [&](const RunRecord& run) {
      return run.label == "pipedream" && run.varied.find("train.seed")->integer == seed;
    });
  for (int seed = 11; seed <= 30; ++seed) runs_.push_back(planned("other", seed));
  // Four pairs find 2.13 standard deviations at 5 % with 80 %.
  const std::string four =
      concat("4 seeds find ", printed("%.3g", detectable_effect(4, 0.05, 0.8)));
  EXPECT_NE(text("less: [{scheme.name: pipedream}, {scheme.name: gpipe}]", rows_).find(four),
            std::string::npos);
  EXPECT_NE(
      text("less: [{scheme.name: gpipe}, [{scheme.name: gpipe}, {scheme.name: pipedream}]]", rows_)
          .find("4 seeds find"),
      std::string::npos);
  std::erase_if(runs_, [](const RunRecord& run) {
    return run.label == "pipedream" && run.varied.find("train.seed")->integer > 2;
  });
  EXPECT_EQ(text("less: [{scheme.name: pipedream}, {scheme.name: gpipe}]", rows_),
            "- it is so: both groups are planned with 2 seeds; expected three or more, so that "
            "runs are compared in pairs\n" +
                kGpipeAtItsEdge);
}

/// Times to a loss are compared as logarithms: what the seeds find is a ratio, and the margin too.
TEST_F(Pilot, SaysRatiosOfTimesToALoss) {
  std::vector<ResultRow> rows;
  for (int seed = 901; seed <= 903; ++seed)
    for (const char* scheme : {"gpipe", "pipedream"}) {
      ResultRow& each = rows.emplace_back(row(scheme, std::to_string(seed), 0.5));
      const double slow = scheme == std::string("gpipe") ? 1 : std::exp(0.1 * (seed - 902));
      each.evaluations = {{"minibatches", {100, 100 * slow * 2}},
                          {"samples", {1, 2}},
                          {"tokens", {1, 2}},
                          {"seconds", {1, 2}},
                          {"test_loss", {3, 2}}};
    }
  const std::string close =
      "metric: steps_to, close: [{scheme.name: pipedream}, {scheme.name: gpipe}], within: ";
  // Logarithms of −0.1, 0 and 0.1: a deviation of 0.1, and for ten pairs half an interval of 0.058.
  const std::string found = text(close + "0.059", rows, "table: {loss: 2}, ");
  EXPECT_NE(found.find("standard deviation 0.1 of the logarithms of 3 pairs; 10 seeds find a ratio "
                       "of 1.1 "),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("the interval is up to a ratio of 1.06 either way. WARNING: it can never be "
                       "shown within a ratio of 1.06"),
            std::string::npos)
      << found;
  EXPECT_EQ(text(close + "0.061", rows, "table: {loss: 2}, ").find("WARNING"), std::string::npos);
}

/// A planned rate at the edge of the pilot's, told once for all seeds; one rate alone is no grid.
TEST_F(Pilot, WarnsOfSettingsAtTheEdgeOfThoseTried) {
  const std::string claim = "less: [{scheme.name: pipedream}, {scheme.name: gpipe}]";
  const auto lines = [&](const std::vector<std::string>& rates) {
    std::vector<ResultRow> rows = rows_;
    for (const std::string& rate : rates) rows.push_back(row("pipedream", "901", 0.4, rate));
    return text(claim, rows);
  };
  EXPECT_EQ(lines({}).find("pipedream: optimizer.lr"), std::string::npos) << lines({});
  EXPECT_NE(lines({"0.2", "0.4"})
                .find("\n- WARNING: pipedream: optimizer.lr 0.1 is the smallest of 3 tried by the "
                      "pilot; a better one may lie beyond it\n"),
            std::string::npos)
      << lines({"0.2", "0.4"});
  EXPECT_NE(lines({"0.05"}).find("pipedream: optimizer.lr 0.1 is the largest of 2 tried"),
            std::string::npos);
  EXPECT_EQ(lines({"0.2", "0.05"}).find("pipedream: optimizer.lr"), std::string::npos);
}

/// What the plan itself varies is not chosen, and each of its runs is held against those that are
/// alike: here the runs of the rate 0.1 tried one momentum, and those of 0.2 two.
TEST_F(Pilot, HoldsEdgesAgainstAlikeRunsOnly) {
  for (RunRecord& run : runs_) {
    const bool even = run.varied.find("train.seed")->integer % 2 == 0;
    run.varied.at_or_add("optimizer.lr") = parse_yaml(even ? "0.2" : "0.1", "t.yaml");
    run.varied.at_or_add("optimizer.momentum") = parse_yaml("0.9", "t.yaml");
  }
  std::vector<ResultRow> rows;
  for (const auto& [rate, momentum] : {std::pair{"0.1", "0.9"}, {"0.2", "0.9"}, {"0.2", "0.5"}}) {
    rows.push_back(row("pipedream", "901", 0.5, rate));
    rows.back().settings["optimizer.momentum"] = momentum;
  }
  EXPECT_EQ(text("finishes: [{scheme.name: gpipe}]", rows),
            "- WARNING: pipedream, lr 0.2: optimizer.momentum 0.9 is the largest of 2 tried by the "
            "pilot; a better one may lie beyond it\n");
}

TEST_F(Pilot, SaysWhatItLacks) {
  const std::string less = "less: [{scheme.name: pipedream}, {scheme.name: gpipe}]";
  EXPECT_EQ(text(less, {}), "- it is so: fewer than 3 runs of gpipe\n");
  EXPECT_EQ(text(less, {rows_[0], rows_[1]}), "- it is so: the pilot has no runs of its groups\n");
  EXPECT_EQ(text(less, {rows_[0], rows_[3]}), "- it is so: fewer than 3 runs of gpipe\n");
  EXPECT_EQ(text("finishes: [{scheme.name: gpipe}]", {rows_[0]}), "");
}

TEST_F(Pilot, RefusesSeedsThatAreNone) {
  for (const char* seed : {"abc", "-3", "9 01", "99999999999999999999", ""}) try {
      text("less: [{scheme.name: pipedream}, {scheme.name: gpipe}]", {row("gpipe", seed, 0.5)});
      ADD_FAILURE() << seed;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
    }
}

}  // namespace
}  // namespace pipewright
