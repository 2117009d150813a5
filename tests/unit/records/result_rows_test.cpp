// SPDX-License-Identifier: Apache-2.0
// Rows of results: every number reads back as the same double, rows have one order, and a file that
// is damaged or contradicts itself is refused with its place.
#include "core/records/result_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

ResultRow row(const std::string& digest, const std::string& label, const std::string& seed) {
  return {.digest = digest,
          .label = label,
          .state = "done",
          .epochs = 3,
          .processor = "Abacus",
          .instruction_set = "BEADS",
          .settings = {{"train.seed", seed}},
          .metrics = {{"test_accuracy", {kNoNumber, 0.25, 0.125}}, {"lr", {0.1, 0.1, 0.1}}}};
}

constexpr const char* kA = "00000000000000aa";
constexpr const char* kB = "00000000000000bb";

/// The text of the Error{Data} that `call` throws.
template <class Call>
std::string data_error_text(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Data ? error.what() : "another kind";
  }
  return "no error";
}

class ResultRows : public RunFolders {
 protected:
  std::vector<ResultRow> read(const std::string& text) const {
    return read_result_rows(put("x.csv", text));
  }
  /// The error without the file's name.
  std::string refused(const std::string& text) const {
    const std::string error = data_error_text([&] { read(text); });
    const std::string file = (root_ / "x.csv").string();
    EXPECT_TRUE(error.starts_with(file)) << error;
    return error.substr(std::min(error.size(), file.size()));
  }
  /// The text of one row, with one part replaced.
  static std::string changed(const std::string& from, const std::string& to) {
    std::string text = result_rows_text({row(kA, "a", "1")});
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
};

/// Spreadsheets take what begins with a sign for a formula, unless a quotation mark is before it.
TEST_F(ResultRows, KeepTextsThatASpreadsheetWouldTakeForFormulas) {
  for (const char* text : {"-minus", "'-quoted", "''", "'", "@a", "=1+1", "+a, b", "−1", "-3"}) {
    ResultRow one = row(kA, text, "1");
    one.settings["x"] = text;
    const ResultRow back = read(result_rows_text({one})).at(0);
    EXPECT_EQ(back.label, text);
    EXPECT_EQ(back.settings, one.settings) << text;
  }
  EXPECT_NE(result_rows_text({row(kA, "-minus", "1")}).find(",'-minus,"), std::string::npos);
}

TEST_F(ResultRows, AreReadAsTheyWereWritten) {
  using Limits = std::numeric_limits<double>;
  ResultRow all = row(kA, "a, \"b\"; c", "1");
  all.state = "diverged";
  all.why = "loss, \"nan\"";
  all.wall_seconds = 0.1 + 0.2;
  all.version = "0.6.0";
  all.commit = "0123456789ab-dirty";
  all.started = "2026-01-31T12:00:00Z";
  all.precision = "float32";
  all.settings["pipeline.balance"] = "[1,2]";
  all.epochs = 9;
  const std::vector<double> values{Limits::denorm_min(), Limits::max(), -0.0,      0.0,    1. / 3,
                                   Limits::infinity(),   kNoNumber,     kNoNumber, -1e-300};
  all.metrics = {{"train_loss", values}};
  const std::string text = result_rows_text({all});
  const ResultRow back = read(text).at(0);
  EXPECT_EQ(back.digest, all.digest);
  EXPECT_EQ(back.label, all.label);
  EXPECT_EQ(back.state, all.state);
  EXPECT_EQ(back.why, all.why);
  EXPECT_EQ(back.epochs, all.epochs);
  EXPECT_EQ(back.wall_seconds, all.wall_seconds);
  EXPECT_TRUE(std::isnan(back.processor_seconds));
  EXPECT_EQ(back.processor, all.processor);
  EXPECT_EQ(back.instruction_set, all.instruction_set);
  EXPECT_EQ(back.version, all.version);
  EXPECT_EQ(back.commit, all.commit);
  EXPECT_EQ(back.started, all.started);
  EXPECT_EQ(back.precision, all.precision);
  EXPECT_EQ(back.settings, all.settings);
  const std::vector<double>& read_back = back.metrics.at("train_loss");
  ASSERT_EQ(read_back.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::signbit(read_back[i]), std::signbit(values[i])) << i;
    EXPECT_TRUE(read_back[i] == values[i] || (std::isnan(read_back[i]) && std::isnan(values[i])));
  }
  EXPECT_EQ(result_rows_text({back}), text);
}

TEST_F(ResultRows, AnyBitsOfADoubleReadBack) {
  std::uint64_t bits = 0x9e3779b97f4a7c15;
  ResultRow many = row(kA, "a", "1");
  std::vector<double>& values = many.metrics["test_accuracy"];
  values.clear();
  while (values.size() < 2000) {
    bits = bits * 6364136223846793005ull + 1442695040888963407ull;
    const double value = std::bit_cast<double>(bits ^ (bits >> 29));
    if (!std::isnan(value)) values.push_back(value);
  }
  many.epochs = values.size();
  many.metrics["lr"].assign(many.epochs, 0.1);
  EXPECT_EQ(read(result_rows_text({many})).at(0).metrics, many.metrics);
}

TEST_F(ResultRows, StandInOneOrderWhateverThatOfTheRuns) {
  std::vector<ResultRow> rows{row(kA, "b", "2"), row(kB, "b", "10"),
                              row("00000000000000cc", "a", "3")};
  const std::string text = result_rows_text(rows);
  std::ranges::reverse(rows);
  EXPECT_EQ(result_rows_text(rows), text);
  const auto read_back = read(text);
  EXPECT_EQ(read_back[0].settings.at("train.seed"), "3");
  EXPECT_EQ(read_back[1].settings.at("train.seed"), "2");  // numbers by value, not by letters
  EXPECT_EQ(read_back[2].settings.at("train.seed"), "10");
}

TEST_F(ResultRows, SayTheLastAndTheBestValueAndCountEqualOnes) {
  const std::string text = result_rows_text({row(kA, "a", "1")});
  EXPECT_NE(
      text.find("train.seed,last.lr,last.test_accuracy,best.test_accuracy,each.lr,each.test_"),
      std::string::npos);
  EXPECT_TRUE(text.ends_with(",1,0.1,0.125,0.25,0.1*3,_ 0.25 0.125\n")) << text;
}

TEST_F(ResultRows, ThatContradictThemselvesAreRefused) {
  EXPECT_EQ(refused(changed(",0.1,0.125,0.25", ",0.1,0.125,0.5")),
            ":2:59: best.test_accuracy is '0.5', but the best value of each.test_accuracy is 0.25");
  EXPECT_EQ(refused(changed(",0.1,0.125,", ",0.1,,")),
            ":2:53: last.test_accuracy is '', but the last value of each.test_accuracy is 0.125");
  EXPECT_EQ(refused(changed("0.1*3", "0.1*2")), ":2:64: each.lr has 2 values of 3 epochs");
  EXPECT_EQ(refused(changed("0.1*3", "0.1*4")),
            ":2:64: each.lr has more than 3 values, one for each of the epochs");
  EXPECT_EQ(refused(changed("each.lr", "each.lx")),
            ":1:1: there is a column 'last.lr' and none 'each.lr'");
}

TEST_F(ResultRows, ThatNobodyWritesAreRefused) {
  for (const auto& [from, to, why] : std::vector<std::array<std::string, 3>>{
           {kA, "00aa", ":2:1: digest is '00aa'; expected 16 hexadecimal digits"},
           {kA, "00000000000000AA", ":2:1: digest is '00000000000000AA'; expected"},
           {",done,", ",running,", ":2:20: state is 'running'; expected done, diverged or failed"},
           {",done,,3,", ",done,,-3,", ":2:26: epochs is '-3'; expected a whole number up to"},
           {",done,,3,", ",done,,99999999999,", ":2:26: epochs is '99999999999'; expected"},
           {",done,,3,,", ",done,,3,-1,", ":2:28: wall_seconds is '-1'; expected seconds"},
           {",done,,3,,", ",done,,3,inf,", ":2:28: wall_seconds is 'inf'; expected seconds"},
           {"0.1*3", "0.1*0", ":2:64: each.lr has '0.1*0'; expected numbers such as 0.5"},
           {"0.1*3", "0.1*", ":2:64: each.lr has '0.1*'; expected numbers such as"},
           {"0.1*3", "nan 0.1*2", ":2:64: each.lr has 'nan'; expected numbers such as"},
           {"0.1*3", "0.1 0.1  0.1", ":2:72: each.lr has ''; expected numbers such as"},
           {"Abacus", "Aba\xff", ":2:30: 'processor' holds what cannot be printed"},
           {"Abacus", "Aba\"cus", ":2:33: a quote stands within a field without quotes"},
           {"Abacus", "\"Aba\"cus", ":2:35: a separator is missing behind a closing quote"},
           {"precision", "commit", ":1:1: the header has no column 'precision'; expected rows"},
           {"train.seed", "last.lr", ": there are two columns 'last.lr'"}})
    EXPECT_NE(refused(changed(from, to)).find(why), std::string::npos)
        << refused(changed(from, to)) << "\n  is not " << why;
}

TEST_F(ResultRows, TakeNoMoreMemoryThanTheirLimitHoweverShortTheyAre) {
  std::string header = "digest,label,state,why,epochs,wall_seconds,processor_seconds,processor,";
  header += "instruction_set,pipewright,commit,precision";
  std::string line = concat(std::string_view(kA), ",a,done,,1000000,,,,,,,");
  for (int i = 0; i < 11; ++i) {
    header += concat(",each.m", i);
    line += ",0.5*1000000";
  }
  EXPECT_NE(
      refused(concat(header, "\n", line, "\n")).find("the file has more than 10,000,000 numbers"),
      std::string::npos);
}

TEST_F(ResultRows, OfWindowsLineEndsAreRead) {
  std::string text = result_rows_text({row(kA, "a", "1")});
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.insert(at, "\r");
  EXPECT_EQ(read(text).size(), 1u);
}

TEST_F(ResultRows, MergeByDigestAndStayWhereTheyAreEqual) {
  ResultRow slower = row(kA, "a", "1");
  slower.wall_seconds = 100;
  slower.metrics["seconds"] = {9, 9, 9};
  ResultRow before = row(kA, "a", "1");
  before.metrics["seconds"] = {1, 2, 3};
  const MergedRows merged = merged_rows({before}, {slower, row(kB, "a", "2")}, "x.csv");
  EXPECT_EQ(merged.added, 1u);
  EXPECT_EQ(merged.replaced, 0u);
  ASSERT_EQ(merged.rows.size(), 2u);
  EXPECT_EQ(merged.rows[0].metrics.at("seconds"), before.metrics.at("seconds"));
}

TEST_F(ResultRows, OfOtherResultsAreRefusedUnlessTheProcessorIsAnother) {
  ResultRow other = row(kA, "a", "1");
  other.metrics["test_accuracy"][2] = std::nextafter(0.125, 1);
  const std::string error =
      data_error_text([&] { merged_rows({row(kA, "a", "1")}, {other}, "x.csv"); });
  EXPECT_NE(error.find("x.csv: the row of a seed 1 (00000000000000aa) has other results than the "
                       "run: test_accuracy of epoch 2 is 0.12500000000000003 and was 0.125"),
            std::string::npos)
      << error;
  other.instruction_set = "STONES";
  const MergedRows merged = merged_rows({row(kA, "a", "1")}, {other}, "x.csv");
  EXPECT_EQ(merged.elsewhere.size(), 1u);
  EXPECT_EQ(merged.rows[0].metrics.at("test_accuracy")[2], 0.125);
  EXPECT_EQ(changes_of_results(row(kA, "a", "1"), row(kB, "b", "1")), "");
}

TEST_F(ResultRows, OfFailedRunsMakeWayAndThoseOfFinishedOnesDoNot) {
  ResultRow failed = row(kA, "a", "1"), diverged = row(kA, "a", "1");
  failed.state = "failed";
  diverged.state = "diverged";
  EXPECT_EQ(merged_rows({failed}, {row(kA, "a", "1")}, "x.csv").rows[0].state, "done");
  EXPECT_EQ(merged_rows({row(kA, "a", "1")}, {failed}, "x.csv").rows[0].state, "done");
  EXPECT_NE(data_error_text([&] {
              merged_rows({diverged}, {row(kA, "a", "1")}, "x.csv");
            }).find("it is done and was diverged"),
            std::string::npos);
}

TEST_F(ResultRows, GetTheMetricsThatTheyLack) {
  ResultRow more = row(kA, "a", "1");
  more.metrics["probe.x.y"] = {1, 2, 3};
  more.metrics.erase("lr");
  const MergedRows merged = merged_rows({row(kA, "a", "1")}, {more}, "x.csv");
  EXPECT_EQ(merged.replaced, 1u);
  EXPECT_EQ(merged.rows[0].metrics.size(), 3u);
}

TEST_F(ResultRows, HaveEvaluationsThatFitEachOther) {
  ResultRow one = row(kA, "a", "1");
  one.evaluations = {{"minibatches", {5, 10}}, {"seconds", {1, 2}}, {"test_loss", {3, 2}}};
  const std::string text = result_rows_text({one});
  EXPECT_EQ(read(text).at(0).evaluations, one.evaluations);
  const std::string shorter = std::string(text).replace(text.rfind("3 2"), 3, "3");
  EXPECT_NE(refused(shorter).find("evaluation.test_loss has 1 value of 2 evaluations"),
            std::string::npos)
      << refused(shorter);
  const std::string endless =
      std::string(text).replace(text.rfind("5 10"), 4, "5*18446744073709551615");
  EXPECT_NE(refused(endless).find("has more than 10,000,000 values"), std::string::npos)
      << refused(endless);
  ResultRow other = one;
  other.evaluations["seconds"] = {2, 3};
  EXPECT_EQ(changes_of_results(one, other), "");
  other.evaluations["test_loss"] = {3, 1};
  EXPECT_EQ(changes_of_results(one, other), "test_loss of evaluation 1 is 1 and was 2");
  other.evaluations["test_loss"] = {3};
  EXPECT_EQ(changes_of_results(one, other), "it has 1 evaluation and had 2");
}

TEST_F(ResultRows, GiveARecordAllThatItsFolderGives) {
  put("f/evaluations.csv", "minibatches,seconds,test_loss\n5,1,2\n10,2,\n15,3,0.5\n");
  RunRecord whole = run("f", "a", "done", "{train: {seed: 1}}", accuracies({"", "0.5", "0.25"}));
  const ResultRow of = *row_of(whole, kA, {"train.seed"});
  RunRecord taken;
  take_row(read(result_rows_text({of})).at(0), taken);
  EXPECT_TRUE(taken.done());
  EXPECT_EQ(taken.evaluations.at("minibatches"), (std::vector<double>{5, 10, 15}));
  EXPECT_EQ(taken.evaluations.at("test_loss")[2], 0.5);
  EXPECT_TRUE(std::isnan(taken.evaluations.at("test_loss")[1]));
  for (const std::string& metric : whole.columns)
    for (const char* epoch : {"last", "best"})
      EXPECT_EQ(metric_of(taken, metric, epoch), metric_of(whole, metric, epoch)) << metric;
  for (const char* state : {"missing", "running", "interrupted"})
    EXPECT_FALSE(row_of(run(state, "a", state, "{}"), kA, {}).has_value()) << state;
  run("g", "a", "failed", "{}");
  put("g/run.json", R"({"state": "failed", "error": "nan", "exit_code": 6})");
  RunRecord diverged;
  take_row(*row_of(read_run(root_ / "g"), kA, {}), diverged);
  EXPECT_TRUE(diverged.diverged());
}

TEST_F(ResultRows, OfEpochsThatDoNotCountFromZeroAreNotMade) {
  const RunRecord gap = run("f", "a", "done", "{}", "epoch,train_loss\n0,1\n2,1\n");
  EXPECT_NE(data_error_text([&] { row_of(gap, kA, {}); }).find("row 2 is not of epoch 1"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright
