// SPDX-License-Identifier: Apache-2.0
#include "core/tables/best_cells.h"

#include <gtest/gtest.h>

#include <limits>

namespace pipewright {
namespace {

/// One column; each row has the results of seeds 1, 2, …
Table table_of(const std::vector<std::pair<std::string, std::vector<double>>>& rows,
               const std::string& metric = "test_accuracy") {
  Table table{.metric = metric, .percent = metric == "test_accuracy", .row_keys = {"scheme.name"}};
  table.column_names = {metric};
  std::size_t run = 0;
  for (const auto& [name, values] : rows) {
    TableCell cell{.values = values};
    for (std::size_t i = 0; i < values.size(); ++i) {
      cell.seeds.push_back(std::to_string(i + 1));
      cell.runs.push_back(run++);
    }
    table.row_names.push_back({name});
    table.cells.push_back({cell});
  }
  return table;
}

std::string sentence(const Table& table) {
  return best_cells(table).value().sentence;
}

TEST(BestCells, SaysHowManyHaveNotReachedTheLoss) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sentence(table_of({{"gpipe", {20, 21, 22}},
                               {"xpipe", {20, kNever, 22}},
                               {"pipedream", {kNever, kNever, kNever}}},
                              "steps_to")),
            "Best: gpipe (21); not all runs of 2 others reached the loss");
}

TEST(BestCells, NamesThoseThanWhichTheBestIsNotSignificantlyBetter) {
  EXPECT_EQ(sentence(table_of({{"gpipe", {0.86, 0.87, 0.88}},
                               {"xpipe", {0.87, 0.86, 0.89}},
                               {"pipedream", {0.20, 0.21, 0.20}}})),
            "Best: xpipe (87.33), not significantly better at the 5 % level than gpipe; "
            "worst: pipedream (20.33)");
}

TEST(BestCells, OfManyTiesThreeAreNamed) {
  std::vector<std::pair<std::string, std::vector<double>>> rows{{"bad", {0.1, 0.11, 0.1}}};
  for (const char* name : {"a", "b", "c", "d", "e"}) rows.push_back({name, {0.86, 0.87, 0.88}});
  EXPECT_EQ(sentence(table_of(rows)),
            "Best: a (87.00), not significantly better at the 5 % level than 4 others (b; c; d; "
            "…); worst: bad (10.33)");
}

TEST(BestCells, OfSingleRunsThatAreEqualNoneIsTheOnlyBest) {
  EXPECT_EQ(sentence(table_of({{"a", {0.5}}, {"b", {0.9}}, {"c", {0.9}}, {"d", {0.9}}})),
            "Best: b (90.00), equal to 2 others (c; d), not compared with any of the "
            "3 others: fewer than 3 runs each; worst: a (50.00)");
}

TEST(BestCells, WhatIsCertainIsSaidPlainly) {
  EXPECT_EQ(sentence(table_of({{"a", {0.9, 0.91, 0.92}}, {"b", {0.5, 0.51, 0.53}}})),
            "Best: a (91.00); worst: b (51.33)");
}

TEST(BestCells, TheWorstHasTiesToo) {
  EXPECT_EQ(sentence(table_of(
                {{"a", {0.9, 0.91, 0.92}}, {"b", {0.5, 0.51, 0.53}}, {"c", {0.51, 0.52, 0.50}}})),
            "Best: a (91.00); worst: c (51.00), not significantly worse at the 5 % level than b");
}

TEST(BestCells, RunsThatFailedAndCountAreAmongTheOthers) {
  Table table = table_of({{"calm", {0.36, 0.35, 0.37}}, {"mixed", {0.72, 0.73, 0.1}}});
  table.cells[1][0].failed = 1;
  EXPECT_TRUE(sentence(table).starts_with("Best: mixed (51.67)")) << sentence(table);
  table.cells[1][0].uncounted = 1;
  EXPECT_TRUE(sentence(table).starts_with("Best: calm (36.00)")) << sentence(table);
}

TEST(BestCells, ACellThatIsLastForAFailedRunSaysSo) {
  Table table = table_of({{"pd", {0.83, 0.84, 0.85}}, {"mp", {0.92, 0.93, 0.94}}});
  table.cells[1][0].failed = table.cells[1][0].uncounted = 1;
  table.cells[1][0].runs.push_back(6);
  EXPECT_EQ(sentence(table), "Best: pd (84.00); worst: mp (93.00, 1 of 4 runs failed)");
}

TEST(BestCells, SingleRunsTellNothing) {
  EXPECT_EQ(sentence(table_of({{"a", {0.9}}, {"b", {0.1}}, {"c", {0.5}}})),
            "Best: a (90.00), not compared with any of the 2 others: fewer than 3 runs each; "
            "worst: b (10.00)");
}

TEST(BestCells, AnInfiniteValueIsComparedWithNothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sentence(table_of({{"a", {7.1, 7.2, 7.3}}, {"b", {infinite, infinite, infinite}}},
                              "test_perplexity")),
            "Best: a (7.2), not compared with the other: not all values are finite, or some are "
            "too large to compare; worst: b (inf)");
  // The squares of variances of these are infinite.
  const std::string large =
      sentence(table_of({{"a", {7.1, 7.2, 7.3}}, {"b", {1e200, 2e200, 3e200}}}, "test_perplexity"));
  EXPECT_NE(large.find("not compared with the other: not all values are finite, or some are too "
                       "large to compare"),
            std::string::npos)
      << large;
}

TEST(BestCells, SmallerLossesAreBetter) {
  const Table table = table_of({{"a", {1, 1.1, 1.2}}, {"b", {3, 3.1, 3.3}}}, "test_loss");
  EXPECT_EQ(sentence(table), "Best: a (1.1); worst: b (3.133)");
  EXPECT_EQ(best_cells(table)->run, 0u);
}

TEST(BestCells, WhereAllAreEqualNoneIsTheWorst) {
  EXPECT_EQ(sentence(table_of({{"a", {0.5, 0.25}}, {"b", {0.25, 0.5}}})),
            "Best: a (37.50), equal to the other, not compared with the other: fewer than 3 runs "
            "each");
}

TEST(BestCells, AMetricThatIsNotJudgedHasNone) {
  for (const char* metric : {"lr", "probe.weight_gap.forward_relative", "modelled_parameters"})
    EXPECT_FALSE(best_cells(table_of({{"a", {1, 2, 3}}, {"b", {3, 4, 5}}}, metric))) << metric;
}

TEST(BestCells, ATableWithoutNumbersHasNone) {
  EXPECT_FALSE(best_cells(table_of({{"a", {}}})).has_value());
}

}  // namespace
}  // namespace pipewright
