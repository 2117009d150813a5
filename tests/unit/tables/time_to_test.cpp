// SPDX-License-Identifier: Apache-2.0
// Time to a loss: where it is reached, that runs which never get there enter no mean, and overheads
// as ratios.
#include "core/tables/time_to.h"

#include <cmath>
#include <limits>

#include "core/config/json.h"
#include "core/system/file.h"
#include "core/tables/against.h"
#include "core/tables/curves.h"
#include "core/tables/results_json.h"
#include "core/tables/table.h"
#include "core/tables/tradeoff.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(TimeTo, IsInterpolatedBetweenTheEvaluationsAroundTheLoss) {
  const std::vector<EvaluationPoint> points{{10, 4}, {20, 3}, {30, 1}, {40, 3}};
  EXPECT_EQ(reached_at(points, 2), 25);
  EXPECT_EQ(reached_at(points, 3), 20);
  EXPECT_EQ(reached_at(points, 5), 10) << "the first evaluation is there";
  EXPECT_EQ(reached_at(points, 0.5), kNever);
  EXPECT_EQ(reached_at({}, 2), std::nullopt);
}

class TimesTo : public RunFolders {
 protected:
  /// Runs of a scheme with seeds 1, 2, …, whose loss falls by 1 each 10 mini-batches of 8 samples
  /// with 4 tokens, from 4 + start to 1 + start.
  void add(const std::string& scheme, const std::vector<double>& starts, int held_out = 0,
           const std::string& accuracy = "0.5") {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::string folder = concat(scheme, "-", i + 1);
      runs_.push_back(run(folder, scheme, "done",
                          concat("{loader: {validation: ", held_out, "}, train: {seed: ", i + 1,
                                 ", evaluate: {every: 10, unit: minibatch}}}"),
                          accuracies({accuracy}),
                          concat("{scheme.name: ", scheme, ", train.seed: ", i + 1, "}")));
      std::string rows = "minibatches,samples,tokens,seconds,test_loss,test_accuracy\n";
      for (int k = 1; k <= 4; ++k)
        rows += concat(10 * k, ",", 80 * k, ",", 320 * k, ",", k, ",", 5 - k + starts[i], ",\n");
      write_file(runs_.back().folder / "evaluations.csv", rows);
      runs_.back().evaluations = read_numbers(runs_.back().folder).evaluations;
    }
  }
  Table table(const std::string& metric) const {
    return make_table(
        read_table_spec(parse_yaml(
            concat("table: {rows: scheme.name, metric: ", metric, ", loss: 2}"), "t.yaml")),
        runs_);
  }
  std::vector<RunRecord> runs_;
};

TEST_F(TimesTo, AreMeansOverSeedsWhereAllRunsGetThere) {
  add("gpipe", {0, 0.5, 1});
  EXPECT_EQ(table("steps_to").cells[0][0].values, (std::vector<double>{30, 35, 40}));
  EXPECT_EQ(table("steps_to").cells[0][0].mean(), 35);
  EXPECT_EQ(table("tokens_to").cells[0][0].mean(), 35 * 32);
}

TEST_F(TimesTo, CountRunsThatNeverGetThereAndAverageNone) {
  add("gpipe", {0, 2, 1});
  const Table steps = table("steps_to");
  EXPECT_EQ(steps.cells[0][0].not_reached(), 1u);
  EXPECT_TRUE(std::isinf(steps.cells[0][0].mean()));
  const std::string text = print_table(steps, TableFormat::Markdown);
  EXPECT_NE(text.find("not reached by 1 of 3, reached at 30, 40"), std::string::npos) << text;
  EXPECT_NE(text.find("steps_to a test loss of 2"), std::string::npos) << text;
  const std::string csv = print_table(steps, TableFormat::Csv);
  EXPECT_NE(csv.find("gpipe,steps_to,3,,,"), std::string::npos) << csv;
  const Value json = parse_json(results_json(steps, {}, {}, {}), "json");
  EXPECT_EQ(json.find("cells")->items[0].find("not_reached")->integer, 1);
}

TEST_F(TimesTo, SayTheUnitOfModelledTimeWhichItsNameDoesNot) {
  add("gpipe", {0});
  runs_[0].modelled = {{"modelled_samples_per_second", 8}};  // a mini-batch in a second
  Table time = table("modelled_time_to");
  EXPECT_NE(print_table(time, TableFormat::Markdown)
                .find("modelled_time_to a test loss of 2, in seconds, mean"),
            std::string::npos);
  EXPECT_NE(print_table(time, TableFormat::Csv).find(",seconds,"), std::string::npos);
  const Value json = parse_json(results_json(time, {}, {}, {}), "json");
  EXPECT_EQ(json.find_path("cells.0.unit")->text, "seconds");
  const Table steps = table("steps_to");
  EXPECT_EQ(parse_json(results_json(steps, {}, {}, {}), "json").find_path("cells.0.unit"), nullptr);
}

TEST_F(TimesTo, OfTheBestValueAreThoseThatHeldOutSamplesReachFirst) {
  const auto best = [&] {
    return make_table(
        read_table_spec(parse_yaml("table: {rows: train.seed, best_over: scheme.name, "
                                   "metric: steps_to, loss: 2}",
                                   "t.yaml")),
        runs_);
  };
  add("never", {3}, 200, "0.95");
  EXPECT_EQ(best().choices, std::vector<std::string>{"seed 1: never (not reached, 1 run)"});
  add("accurate", {1}, 200, "0.9");
  add("fast", {0}, 200, "0.4");
  EXPECT_EQ(best().cells[0][0].values, std::vector<double>{30});
  EXPECT_EQ(best().choices, std::vector<std::string>{"seed 1: fast (30, 1 run)"});
}

TEST_F(TimesTo, CountRunsThatNeverGetThereBesideTheTimeOfTheTrainingToo) {
  add("gpipe", {0, 2, 1});
  add("pipedream", {0, 0, 0});
  for (RunRecord& run : runs_)
    run.modelled = {{"modelled_hours", 1},
                    {"modelled_samples_per_second", 1},
                    {"modelled_bubble", 0},
                    {"modelled_worker_state_gib", 1}};
  TableSpec spec = read_table_spec(
      parse_yaml("table: {rows: scheme.name, metric: steps_to, loss: 2}", "t.yaml"));
  spec.hardware = "h.yaml";
  const std::vector<TradeoffRow> rows = make_tradeoff(spec, runs_);
  const std::string text = print_tradeoff(spec, rows);
  EXPECT_NE(text.find("| gpipe | not reached by 1 of 3 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| pipedream | 30.00 ± 0.00 (3) |"), std::string::npos) << text;
  EXPECT_EQ(text.find("inf"), std::string::npos) << text;
}

TEST_F(TimesTo, StandOnAnAxisOfModelledHoursIfThereIsHardware) {
  add("gpipe", {0});
  add("pipedream", {0});
  runs_[0].modelled = {{"modelled_samples_per_second", 0.5}};
  const auto pictures = make_pictures(
      read_plot_spec(parse_yaml("plot: {x: minibatch, y: test_loss, lines: scheme.name, "
                                "hardware: h.yaml, log: x}",
                                "t.yaml")),
      runs_);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].hours_on, "h");
  ASSERT_EQ(pictures[0].curves.size(), 1u) << "nothing is known of the hours of pipedream";
  const auto& points = pictures[0].curves[0].points;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1].x, 160 / 0.5 / 3600);
  EXPECT_EQ(points[1].mean, 3);
}

TEST_F(TimesTo, AreComparedAsRatiosInPairsOfEqualSeeds) {
  add("gpipe", {0, 0.2, 0.6});
  add("pipedream", {0.1, 0.7, 0.9});
  const Table tokens = table("tokens_to");
  const std::vector<ClaimTest> tests = differences_from("gpipe", tokens, runs_);
  ASSERT_EQ(tests.size(), 1u);
  // by hand: 31/30, 37/32 and 39/36 as logarithms, t of 2 degrees at 95 % is 4.302653
  const std::vector<double> logs{std::log(31 / 30.), std::log(37 / 32.), std::log(39 / 36.)};
  const double mean = (logs[0] + logs[1] + logs[2]) / 3;
  double squares = 0;
  for (const double each : logs) squares += (each - mean) * (each - mean);
  const double reach = 4.302652729911275 * std::sqrt(squares / 2 / 3);
  EXPECT_TRUE(tests[0].ratio);
  EXPECT_NEAR(tests[0].effect, std::exp(mean), 1e-12);
  EXPECT_NEAR(tests[0].interval.low, std::exp(mean - reach), 1e-6);
  EXPECT_NEAR(tests[0].interval.high, std::exp(mean + reach), 1e-6);
  const std::string text = print_differences("gpipe", tokens.metric, tests, TableFormat::Csv);
  EXPECT_NE(text.find("as ratios of geometric means, by t tests"), std::string::npos) << text;
  EXPECT_NE(text.find(") over gpipe ("), std::string::npos) << text;
}

TEST_F(TimesTo, AreNotComparedWhereARunNeverGetsThere) {
  add("gpipe", {0, 0.2, 0.6});
  add("pipedream", {0.1, 2, 0.9});
  const std::vector<ClaimTest> tests = differences_from("gpipe", table("steps_to"), runs_);
  EXPECT_FALSE(tests[0].compared);
  EXPECT_EQ(tests[0].why, "1 of 3 runs of pipedream has not reached the loss");
}

TEST_F(TimesTo, AreSuggestedWhereANameIsNearlyOneOfThem) {
  add("gpipe", {0});
  EXPECT_NE(error_text([&] { table("step_to"); }).find("did you mean 'steps_to'?"),
            std::string::npos);
}

TEST_F(TimesTo, AskForALoss) {
  EXPECT_NE(error_text([] {
              read_table_spec(parse_yaml("table: {metric: steps_to}", "t.yaml"));
            }).find("table.loss is missing"),
            std::string::npos);
}

TEST_F(TimesTo, LeaveNoPointInAPictureWhereARunNeverGetsThere) {
  add("gpipe", {0, 2, 1});
  const std::vector<Picture> pictures =
      make_pictures(read_plot_spec(parse_yaml(
                        "plot: {x: scheme.name, y: steps_to, loss: 2, lines: '=all'}", "t.yaml")),
                    runs_);
  ASSERT_EQ(pictures.size(), 1u);
  ASSERT_EQ(pictures[0].curves.size(), 1u);
  EXPECT_TRUE(pictures[0].curves[0].points.empty());
  ASSERT_EQ(pictures[0].curves[0].diverged.size(), 1u);
  EXPECT_EQ(pictures[0].curves[0].diverged[0].runs, 1);
  EXPECT_EQ(pictures[0].curves[0].lost, "did not reach the loss");
}

TEST_F(TimesTo, EvaluationsAreDrawnOverMiniBatchesAndTokens) {
  add("gpipe", {0, 1, 2});
  for (const auto& [x, first] : {std::pair("minibatch", 10.), std::pair("tokens", 320.)}) {
    const std::vector<Picture> pictures = make_pictures(
        read_plot_spec(parse_yaml(
            concat("plot: {x: ", std::string(x), ", y: test_loss, lines: scheme.name}"), "t.yaml")),
        runs_);
    const Curve& curve = pictures.at(0).curves.at(0);
    ASSERT_EQ(curve.points.size(), 4u) << x;
    EXPECT_EQ(curve.points[0].x, first);
    EXPECT_EQ(curve.points[0].mean, 5);
  }
}

}  // namespace
}  // namespace pipewright
