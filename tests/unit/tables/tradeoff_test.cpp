// SPDX-License-Identifier: Apache-2.0
// Accuracy against modelled time: which rows there are, and which of them no other beats.
#include "core/tables/tradeoff.h"

#include "core/config/json.h"
#include "core/tables/results_json.h"
#include "core/tables/run_keys.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class Tradeoffs : public RunFolders {
 protected:
  /// A finished run with that last accuracy, which takes so many hours.
  RunRecord trained(const std::string& label, const std::string& accuracy, double hours) {
    RunRecord record =
        run(concat("run-", ++count_), label, "done", "{name: x}", accuracies({"0.1", accuracy}));
    record.modelled = {{"modelled_hours", hours},
                       {"modelled_samples_per_second", 100},
                       {"modelled_bubble", 0.25},
                       {"modelled_worker_state_gib", 2}};
    return record;
  }
  TableSpec spec() const {
    return read_table_spec(
        parse_yaml("table: {rows: label, hardware: h.yaml}", (root_ / "t.yaml").string()));
  }
  int count_ = 0;
};

TEST_F(Tradeoffs, TheParetoSetIsWhatNoOtherBeatsInBoth) {
  const auto rows = make_tradeoff(
      spec(), {trained("slow and good", "0.9", 10), trained("beaten", "0.7", 5),
               trained("fast and fair", "0.8", 4), trained("as fast, worse", "0.79", 4),
               trained("fastest", "0.2", 1), trained("slow and as good", "0.9", 11),
               trained("as fast but for rounding, worse", "0.78", 3.9999999)});
  std::vector<std::string> efficient;
  for (const TradeoffRow& row : rows)
    if (row.efficient) efficient.push_back(row.name);
  EXPECT_EQ(efficient, (std::vector<std::string>{"fastest", "fast and fair", "slow and good"}));
}

TEST(ShownMean, HasFourDigitsOfTheMeanHoweverSmallItIs) {
  EXPECT_EQ(shown_mean(true, 0.931, 0.0022), "93.10 ± 0.22");
  EXPECT_EQ(shown_mean(false, 0.0027, 0.0002), "0.002700 ± 0.000200");
  EXPECT_EQ(shown_mean(false, 3.5e-12, 1e-13), "3.500e-12 ± 1.0e-13");
  EXPECT_EQ(shown_mean(false, 1234, kNoNumber), "1234");
  EXPECT_EQ(shown_number("test_accuracy", -1e-7), "0.00");
}

TEST_F(Tradeoffs, StandInJsonWithTheirNumbers) {
  const std::vector<RunRecord> runs{trained("a", "0.75", 3), trained("b", "0.5", 4)};
  const Value json =
      parse_json(results_json(make_table(spec(), runs), {}, {}, make_tradeoff(spec(), runs)), "x");
  const Value* const rows = json.find("tradeoff");
  ASSERT_NE(rows, nullptr);
  ASSERT_EQ(rows->items.size(), 2u);
  const auto number = [&](std::size_t row, const char* key) {
    return rows->items[row].find(key)->number;
  };
  EXPECT_EQ(number(0, "metric"), 0.75);
  EXPECT_EQ(number(0, "hours"), 3);
  EXPECT_EQ(number(0, "samples_per_second"), 100);
  EXPECT_EQ(number(0, "bubble"), 0.25);
  EXPECT_EQ(number(0, "worker_state_gib"), 2);
  EXPECT_TRUE(rows->items[0].find("efficient")->flag);
  EXPECT_FALSE(rows->items[1].find("efficient")->flag);
}

TEST_F(Tradeoffs, EqualRowsBothStay) {
  const auto rows = make_tradeoff(spec(), {trained("a", "0.9", 1), trained("b", "0.9", 1)});
  EXPECT_TRUE(rows.at(0).efficient);
  EXPECT_TRUE(rows.at(1).efficient);
}

TEST_F(Tradeoffs, ARowIsTheMeanOverItsRunsThatAreDone) {
  RunRecord failed = trained("a", "0.1", 3);
  failed.state = "failed";
  RunRecord never = failed;
  never.label = "b";
  const auto rows =
      make_tradeoff(spec(), {trained("a", "0.8", 3), trained("a", "0.9", 3), failed, never});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].runs, 2u);
  EXPECT_DOUBLE_EQ(rows[0].metric, 0.85);
  EXPECT_EQ(rows[0].time, 3);
  EXPECT_EQ(print_tradeoff(spec(), rows),
            "test_accuracy in percent against the time modelled on h; ★ marks those that no "
            "other beats in both, among those of which no run failed.\n\n"
            "| | test_accuracy | time of the whole training | samples/s | bubble in % | GiB of "
            "state on the fullest "
            "worker | |\n"
            "|:--|--:|--:|--:|--:|--:|:--|\n"
            "| a | 85.00 ± 7.07 (2, 1 failed) | 3 h | 100 | 25.0 | 2 |   |\n");
}

/// The line of a row with so many hours.
std::string line_of(double hours, std::size_t runs) {
  const std::string text =
      print_tradeoff({.metric = {.name = "test_accuracy"}},
                     {{.name = "a", .metric = 0.5, .std = 0.25, .runs = runs, .time = hours}});
  return split(text, '\n').at(4);
}

TEST_F(Tradeoffs, ASingleRunHasNoStandardDeviation) {
  EXPECT_TRUE(line_of(2, 1).starts_with("| a | 50.00 (1) | 2 h |")) << line_of(2, 1);
  EXPECT_TRUE(line_of(2, 2).starts_with("| a | 50.00 ± 25.00 (2) | 2 h |")) << line_of(2, 2);
}

TEST_F(Tradeoffs, TimesHaveTheUnitThatSuitsThem) {
  for (const auto& [hours, text] :
       std::vector<std::pair<double, std::string>>{{100, "100 h"},
                                                   {0.5, "30 min"},
                                                   {0.5 / 60, "30 s"},
                                                   {0.25 / 3600, "250 ms"},
                                                   {3e-6 / 3600, "3 µs"},
                                                   {70e-9 / 3600, "70 ns"},
                                                   {0, "0 ns"}})
    EXPECT_NE(line_of(hours, 1).find(concat("| ", text, " |")), std::string::npos)
        << line_of(hours, 1);
}

TEST_F(Tradeoffs, RowsWithoutATimeAreTheLast) {
  const auto timeless = [&](const std::string& label) {
    RunRecord failed = trained(label, "0.1", 0);
    failed.state = "failed";
    failed.modelled.erase(failed.modelled.begin());
    return failed;
  };
  TableSpec of = spec();
  of.failed_as = 0.1;
  const auto rows =
      make_tradeoff(of, {timeless("a"), trained("b", "0.8", 4), timeless("c"),
                         trained("d", "0.7", 2), timeless("e"), trained("f", "0.6", 3)});
  std::string names;
  for (const TradeoffRow& row : rows) names += row.name.front();
  EXPECT_EQ(names.substr(0, 3), "dfb") << names;
  const std::string text = print_tradeoff(of, rows);
  EXPECT_NE(text.find("| a | 10.00 (1) | – |"), std::string::npos) << text;
}

TEST_F(Tradeoffs, AModelledMetricNeedsNoTraining) {
  RunRecord missing = trained("a", "0.1", 3);
  missing.state = "missing";
  TableSpec of = spec();
  of.metric.name = "modelled_hours";
  const Table table = make_table(of, {missing});
  EXPECT_EQ(table.cells[0][0].values, std::vector<double>{3});
  EXPECT_NE(table.caption.find("modelled_hours on h, "), std::string::npos) << table.caption;
}

TEST_F(Tradeoffs, RowsWithRunsThatFailedAreNotInTheParetoSetAndBeatNone) {
  RunRecord diverged = trained("lucky", "0.1", 1), killed = diverged;
  diverged.state = killed.state = "failed";
  diverged.exit_code = 6;
  killed.exit_code = 3;
  const auto rows =
      make_tradeoff(spec(), {trained("slow", "0.8", 10), trained("lucky", "0.9", 1), diverged});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].efficient);
  EXPECT_TRUE(rows[1].efficient);
  const std::string text = print_tradeoff(spec(), rows);
  EXPECT_NE(text.find("| lucky | 90.00 (1, 1 diverged) | 1 h | 100 | 25.0 | 2 |   |"),
            std::string::npos)
      << text;
  const std::vector<RunRecord> runs{trained("slow", "0.8", 10), trained("lucky", "0.9", 1), killed};
  const auto others = make_tradeoff(spec(), runs);
  EXPECT_FALSE(others.at(0).efficient);
  EXPECT_NE(print_tradeoff(spec(), others).find("| lucky | 90.00 (1, 1 failed) |"),
            std::string::npos);
  // Where runs that failed count, the mean is of all.
  TableSpec counting = spec();
  counting.failed_as = 0.7;
  EXPECT_TRUE(make_tradeoff(counting, runs).at(0).efficient);
  EXPECT_NE(text.find("beats in both, among those of which no run failed."), std::string::npos)
      << text;
}

}  // namespace
}  // namespace pipewright
