// SPDX-License-Identifier: Apache-2.0
// Claims: which runs are compared, when a claim is held, and that runs that are not there, or too
// few of them, show nothing.
#include "core/tables/verdicts.h"

#include <cmath>

#include "core/config/json.h"
#include "core/statistics/tests.h"
#include "core/tables/results_json.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

class ExperimentClaims : public RunFolders {
 protected:
  /// Runs of a scheme with the seeds from `first` on; "nan" stands for one that diverged, "" for a
  /// missing one.
  void add(const std::string& scheme, const std::vector<std::string>& values, int stages = 2,
           int first = 1) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int seed = first + static_cast<int>(i);
      const std::string config =
          concat("{scheme: {name: ", scheme, "}, pipeline: {stages: ", stages,
                 "}, train: {seed: ", seed, "}}");
      const std::string varied = concat("{scheme.name: ", scheme, ", pipeline.stages: ", stages,
                                        ", train.seed: ", seed, "}");
      const std::string folder = concat(scheme, "-", stages, "-", seed);
      const std::string& value = values[i];
      const bool done = !value.empty() && value != "nan";
      runs_.push_back(run(folder, scheme,
                          done            ? "done"
                          : value.empty() ? "missing"
                                          : "failed",
                          config, done ? accuracies({value}) : "", varied));
      if (value != "nan") continue;
      put(folder + "/run.json", R"({"state": "failed", "error": "nan", "exit_code": 6})");
      runs_.back() = read_run(root_ / folder);
    }
  }

  std::vector<Verdict> verdicts(const std::string& claims, const std::string& table = "{}") const {
    const Value document =
        parse_yaml(concat("{table: ", table, ", claims: ", claims, "}"), "t.yaml");
    return judge(read_claims(document), read_table_spec(document), runs_);
  }
  Verdict verdict(const std::string& condition) const {
    return verdicts(concat("[{say: it is so, ", condition, "}]")).at(0);
  }

  std::vector<RunRecord> runs_;
};

constexpr const char* kLess = "less: [{scheme.name: pipedream}, {scheme.name: gpipe}]";
constexpr const char* kMore = "less: [{scheme.name: gpipe}, {scheme.name: pipedream}]";

TEST_F(ExperimentClaims, OneIsHeldWhereTheIntervalIsOnItsSideAndNotHeldOnTheOther) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  const Verdict held = verdict(kLess);
  EXPECT_EQ(held.outcome, Outcome::Held);
  // Paired by seed: differences 0.10, 0.09, 0.11; mean 0.10 ± 4.3027 · 0.01 / √3 = 0.0248. With two
  // degrees of freedom p = 1 − t / √(t² + 2), t = 0.1 √3 / 0.01. Of 8 choices of signs 2 are as
  // far.
  EXPECT_EQ(held.why,
            "gpipe (80.00) minus pipedream (70.00) is between 7.52 and 12.48 (95 %, paired over 3 "
            "seeds, p 0.0033, by signs 0.25)");
  EXPECT_EQ(verdict(kMore).outcome, Outcome::NotHeld);
}

TEST_F(ExperimentClaims, OneIsNotShownWhereTheIntervalContainsZero) {
  add("gpipe", {"0.80", "0.70", "0.60"});
  add("pipedream", {"0.70", "0.80", "0.55"});
  EXPECT_EQ(verdict(kLess).outcome, Outcome::NotShown);
  EXPECT_EQ(verdict(kMore).outcome, Outcome::NotShown);
}

TEST_F(ExperimentClaims, AChainHoldsIfEachStepDoes) {
  add("a", {"0.1", "0.1", "0.101"});
  add("b", {"0.2", "0.2", "0.2"});
  add("c", {"0.15", "0.151", "0.15"});
  EXPECT_EQ(verdict("less: [{scheme.name: a}, {scheme.name: c}, {scheme.name: b}]").outcome,
            Outcome::Held);
  const Verdict broken = verdict("less: [{scheme.name: a}, {scheme.name: b}, {scheme.name: c}]");
  EXPECT_EQ(broken.outcome, Outcome::NotHeld);
  EXPECT_EQ(broken.why,
            "b (20.00) minus a (10.03) is between 9.82 and 10.11 (95 %, paired over 3 seeds, p "
            "1e-05, by signs 0.25), with Holm's correction 2e-05; c (15.03) minus b (20.00) is "
            "between -5.11 and -4.82 (95 %, paired over 3 seeds, p 5e-05, by signs 0.25), with "
            "Holm's correction 5e-05");
}

TEST_F(ExperimentClaims, CloseMeansThatTheWholeIntervalIsWithinTheMargin) {
  add("gpipe", {"0.80", "0.70", "0.60"});
  add("pipedream", {"0.81", "0.69", "0.60"});  // differences −0.01, 0.01, 0: 90 % within 0.0169
  const std::string close = "close: [{scheme.name: gpipe}, {scheme.name: pipedream}], within: ";
  EXPECT_EQ(verdict(close + "0.017").outcome, Outcome::Held);
  EXPECT_EQ(verdict(close + "0.016").outcome, Outcome::NotShown);
  add("far", {"0.2", "0.1", "0"});
  EXPECT_EQ(verdict("close: [{scheme.name: gpipe}, {scheme.name: far}], within: 0.1").outcome,
            Outcome::NotHeld);
}

/// Above the middle of two schemes, and a difference of differences: both are means seed by seed.
TEST_F(ExperimentClaims, AListOfGroupsIsTheirMeanSeedBySeed) {
  add("gpipe", {"0.80", "0.70", "0.60"});
  add("local", {"0.60", "0.50", "0.50"});      // the middle is 0.70, 0.60, 0.55
  add("three", {"0.75", "0.66", "0.60"});      // 0.05, 0.06 and 0.05 above it
  add("pipedream", {"0.60", "0.52", "0.42"});  // 0.20, 0.18, 0.18 below gpipe
  add("muon", {"0.90", "0.80", "0.70"});
  add("slow", {"0.88", "0.77", "0.68"});  // 0.02, 0.03, 0.02 below muon
  const Verdict middle =
      verdict("less: [[{scheme.name: local}, {scheme.name: gpipe}], {scheme.name: three}]");
  EXPECT_EQ(middle.outcome, Outcome::Held);
  EXPECT_EQ(middle.tests.at(0).minus, "the mean of local and gpipe");
  EXPECT_NEAR(middle.tests.at(0).effect, 0.16 / 3, 1e-12);
  // Half of (gpipe − pipedream) − (muon − slow), which is 0.18, 0.15, 0.16.
  const Verdict interaction = verdict(
      "less: [[{scheme.name: pipedream}, {scheme.name: muon}], [{scheme.name: gpipe}, "
      "{scheme.name: slow}]]");
  EXPECT_EQ(interaction.outcome, Outcome::Held);
  EXPECT_NEAR(interaction.tests.at(0).effect, 0.49 / 6, 1e-12);
  add("late", {"0.1", "0.2", ""});
  const Verdict lacking =
      verdict("less: [[{scheme.name: late}, {scheme.name: gpipe}], {scheme.name: three}]");
  EXPECT_EQ(lacking.outcome, Outcome::NotShown);
  EXPECT_EQ(lacking.why, "2 of 3 runs of the mean of late and gpipe done so far");
  add("other", {"0.1", "0.2", "0.3"}, 2, 2);
  EXPECT_EQ(
      verdict("less: [[{scheme.name: other}, {scheme.name: gpipe}], {scheme.name: three}]").why,
      "the groups of the mean of other and gpipe share only 2 seeds");
}

TEST_F(ExperimentClaims, RunsThatAreNotDoneShowNothing) {
  add("gpipe", {"0.80", "0.70", "0.90", "0.8"});
  add("pipedream", {"0.10", "0.11", "0.09", "nan"});
  EXPECT_EQ(verdict(kLess).outcome, Outcome::NotShown);
  EXPECT_EQ(verdict(kLess).why, "1 of 4 runs of pipedream diverged");
  add("late", {"0.10", "0.11", "0.09", ""});
  EXPECT_EQ(verdict("less: [{scheme.name: late}, {scheme.name: gpipe}]").why,
            "3 of 4 runs of late done so far");
}

TEST_F(ExperimentClaims, TwoSeedsShowNothing) {
  add("gpipe", {"0.80", "0.81"});
  add("pipedream", {"0.10", "0.11"});
  EXPECT_EQ(verdict(kLess).outcome, Outcome::NotShown);
  EXPECT_EQ(verdict(kLess).why, "fewer than 3 runs of gpipe");
}

TEST_F(ExperimentClaims, DivergingIsAClaimOfItsOwn) {
  add("gpipe", {"0.80", "0.70", "0.75"});
  add("pipedream", {"nan", "nan", "nan"});
  add("pipemare", {"nan", ""});
  add("interlocking", {"nan", "nan"});
  EXPECT_EQ(verdict("diverges: [{scheme.name: pipedream}]").outcome, Outcome::Held);
  EXPECT_EQ(verdict("diverges: [{scheme.name: gpipe}]").outcome, Outcome::NotHeld);
  EXPECT_EQ(verdict("diverges: [{scheme.name: pipemare}]").outcome, Outcome::NotShown);
  EXPECT_EQ(verdict("diverges: [{scheme.name: interlocking}]").outcome, Outcome::NotShown);
  EXPECT_EQ(verdict("finishes: [{scheme.name: gpipe}]").outcome, Outcome::Held);
  const Verdict both = verdict(
      "diverges: [{scheme.name: pipedream}], finishes: [{scheme.name: "
      "pipedream}]");
  EXPECT_EQ(both.outcome, Outcome::NotHeld);
  // 0.025 to the power of 1/3 is 0.29.
  EXPECT_EQ(
      both.why,
      "3 of 3 runs of pipedream diverged (95 %: 29 to 100 % of all such runs); 0 of 3 runs of "
      "pipedream done (95 %: 0 to 71 % of all such runs)");
}

/// A run that diverged, or ended at chance, has not learned; one that is missing decides nothing.
TEST_F(ExperimentClaims, LearningIsReachingTheFloor) {
  add("gpipe", {"0.80", "0.70", "0.3"});
  add("pipedream", {"nan", "0.1", "0.29"});
  add("pipemare", {"0.1", "0.1", ""});
  const auto outcome = [&](const char* condition, const char* scheme, const char* more) {
    return verdict(concat(std::string_view(condition), ": [{scheme.name: ",
                          std::string_view(scheme), "}], ", std::string_view(more)))
        .outcome;
  };
  EXPECT_EQ(outcome("learns", "gpipe", "floor: 0.3"), Outcome::Held);
  EXPECT_EQ(outcome("learns", "gpipe", "floor: 0.31"), Outcome::NotHeld);
  EXPECT_EQ(outcome("learns_nothing", "gpipe", "floor: 0.31"), Outcome::NotHeld);
  EXPECT_EQ(outcome("learns_nothing", "pipedream", "floor: 0.3"), Outcome::Held);
  EXPECT_EQ(outcome("learns", "pipedream", "floor: 0.3"), Outcome::NotHeld);
  EXPECT_EQ(outcome("learns_nothing", "pipemare", "floor: 0.3"), Outcome::NotShown);
  // Of a loss, less is better; all of these runs have 0.5.
  EXPECT_EQ(outcome("learns", "gpipe", "metric: train_loss, floor: 0.5"), Outcome::Held);
  EXPECT_EQ(outcome("learns_nothing", "gpipe", "metric: train_loss, floor: 0.4"), Outcome::Held);
  const Verdict both = verdict(
      "learns: [{scheme.name: gpipe}], learns_nothing: [{scheme.name: pipedream}], floor: 0.3");
  EXPECT_EQ(both.outcome, Outcome::Held);
  EXPECT_EQ(both.why,
            "3 of 3 runs of gpipe reached the test_accuracy 30 (95 %: 29 to 100 % of all such "
            "runs); 3 of 3 runs of pipedream did not reach the test_accuracy 30 (95 %: 29 to 100 % "
            "of all such runs)");
}

/// Alone the difference is beyond the margin with p = 0.04, beside another comparison it is not.
TEST_F(ExperimentClaims, LyingBeyondTheMarginIsCorrectedWithAllComparisons) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("far", {"0.70", "0.59", "0.78"});  // differences 0.10, 0.11, 0.12
  add("other", {"0.71", "0.79", "0.90"});
  const std::string close =
      "{say: a, close: [{scheme.name: gpipe}, {scheme.name: far}], within: 0.083}";
  const double p = two_sided_p(paired_difference(std::vector{0.017, 0.027, 0.037}));
  ASSERT_TRUE(p > 0.025 && p < 0.05) << p;
  const auto alone = verdicts("[" + close + "]");
  EXPECT_EQ(alone.at(0).outcome, Outcome::NotHeld);
  EXPECT_NEAR(alone.at(0).tests.at(0).p, p, tolerance::kIntegral);
  const std::string more = "{say: b, less: [{scheme.name: other}, {scheme.name: gpipe}]}";
  EXPECT_EQ(verdicts("[" + close + ", " + more + "]").at(0).outcome, Outcome::NotShown);
}

TEST_F(ExperimentClaims, AnotherMetricThanTheTablesHasItsOwnUnit) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  EXPECT_EQ(verdict(concat("metric: train_loss, ", std::string_view(kLess))).why,
            "gpipe (0.5) minus pipedream (0.5) is 0 in all 3 pairs");
}

TEST_F(ExperimentClaims, OfNoRunNothingIsShown) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"}, 4);
  for (const char* kind : {"diverges", "finishes", "floor: 0.3, learns"}) {
    const auto text = error_text([&] {
      verdict(concat(std::string_view(kind), ": [{scheme.name: gpipe, pipeline.stages: 4}]"));
    });
    EXPECT_NE(text.find("[0]: no run has all of gpipe, stages 4"), std::string::npos) << text;
  }
}

TEST_F(ExperimentClaims, AMetricThatIsInfiniteShowsNothing) {
  add("gpipe", {"0.80", "inf", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  EXPECT_EQ(verdict(kLess).outcome, Outcome::NotShown);
  EXPECT_EQ(
      verdict(kLess).why,
      "1 of 3 runs of gpipe with a test_accuracy that is not finite, or too large to compare");
}

/// Squares of variances of finite values may be infinite.
TEST_F(ExperimentClaims, AMetricWhoseSpreadNoNumberHoldsShowsNothing) {
  add("gpipe", {"1e100", "2e200", "3e300"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  EXPECT_EQ(verdict(kLess).outcome, Outcome::NotShown);
  runs_.clear();
  add("gpipe", {"1e69", "2e69", "4e69"});
  add("pipedream", {"-1e69", "-2e69", "-3e69"}, 2, 4);
  EXPECT_TRUE(verdict(kLess).tests.at(0).p < 0.05) << "Welch's degrees are known";
}

/// Whichever of the runs says what another leaves out.
TEST_F(ExperimentClaims, AGroupWhoseRunsDifferInMoreThanTheirSeedIsRefused) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", "0.79"});
  const std::vector<RunRecord> plain = runs_;
  for (const std::size_t other : {0, 1, 2}) {
    runs_ = plain;
    runs_[other].varied.at_or_add("optimizer.lr") = Value::of(0.2);
    const auto text = error_text([&] { verdict(kLess); });
    const std::string values = other == 0 ? "(0.2, –)" : "(–, 0.2)";
    EXPECT_NE(text.find("less[1]: the runs with gpipe differ in optimizer.lr " + values),
              std::string::npos)
        << text;
  }
  runs_ = plain;
  runs_.push_back(runs_.front());
  EXPECT_NE(error_text([&] {
              verdict(kLess);
            }).find("less[1]: two runs with gpipe have seed 1; name a label or a setting"),
            std::string::npos);
}

TEST_F(ExperimentClaims, RunsThatFailedLackNothingWhereTheyCount) {
  add("gpipe", {"0.80", "0.70", "0.90", "0.85"});
  add("pipedream", {"0.70", "nan", "nan", ""});
  const auto why = [&](const std::string& table) {
    return verdicts(concat("[{say: a, ", std::string_view(kLess), "}]"), table).at(0).why;
  };
  EXPECT_EQ(why("{}"), "2 of 4 runs of pipedream diverged");
  EXPECT_EQ(why("{failed_as: 0.1}"), "3 of 4 runs of pipedream ended so far");
  runs_[5].exit_code = 3;
  EXPECT_EQ(why("{}"), "2 of 4 runs of pipedream failed");
}

/// A command line may leave seeds of a sweep out that its claims name.
TEST_F(ExperimentClaims, OfSeedsThatAreNotPlannedNothingIsShown) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  for (const char* kind :
       {"diverges", "finishes", "floor: 0.3, learns", "floor: 0.3, learns_nothing"}) {
    const Verdict found = verdict(concat(std::string_view(kind), ": [{train.seed: 99}]"));
    EXPECT_EQ(found.outcome, Outcome::NotShown) << kind;
    EXPECT_NE(found.why.find("0 of 0 runs of seed 99"), std::string::npos) << found.why;
  }
  EXPECT_EQ(verdict("less: [{train.seed: 99}, {scheme.name: gpipe}]").outcome, Outcome::NotShown);
}

/// Two comparisons with p = 0.03 each hold alone, not together.
TEST_F(ExperimentClaims, ManyComparisonsAreCorrected) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.778", "0.688", "0.885"});
  add("pipemare", {"0.778", "0.688", "0.885"});
  const std::string one = concat("{say: a, ", std::string_view(kLess), "}");
  const std::string other = "{say: b, less: [{scheme.name: pipemare}, {scheme.name: gpipe}]}";
  const double p = two_sided_p(paired_difference(std::vector{0.022, 0.012, 0.015}));
  ASSERT_TRUE(p > 0.025 && p < 0.05) << p;
  EXPECT_EQ(verdicts("[" + one + "]").at(0).outcome, Outcome::Held);
  EXPECT_EQ(verdicts("[" + one + ", " + other + "]").at(0).outcome, Outcome::NotShown);
}

TEST_F(ExperimentClaims, FaultsAreErrorsWithPlaceAndSuggestion) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("gpipe", {"0.80", "0.70", "0.90"}, 4);
  add("pipedream", {"0.70", "0.61", "0.79"});
  const auto fails = [&](const std::string& claim, const char* part) {
    const auto text = error_text([&] { verdicts("[" + claim + "]"); });
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  fails("{less: [{scheme.name: gpipe}, {scheme.name: pipedream}]}", "claims[0].say is missing");
  fails(
      "{say: x}",
      "claims[0].less is missing, and so are close, diverges, finishes, learns and learns_nothing");
  fails("{say: x, less: [{scheme.name: gpipe}]}",
        "claims[0].less is a list; expected a list of at least 2 groups");
  fails("{say: x, less: [gpipe, pipedream]}", "claims[0].less[0] is 'gpipe'; expected keys and");
  fails("{say: x, less: [{scheme: {name: a}}, {scheme.name: gpipe}]}",
        "claims[0].less[0].scheme is a mapping; expected a value, and dotted keys");
  fails("{say: x, diverges: [{scheme.name: gpip}]}",
        "claims[0].diverges[0]: no run has scheme.name gpip; did you mean 'gpipe'?");
  fails("{say: x, diverges: [{scheme.nam: gpipe}]}",
        "claims[0].diverges[0]: no run has an option 'scheme.nam'; did you mean 'scheme.name'?");
  fails("{say: x, metric: test_acuracy, diverges: [{scheme.name: gpipe}]}",
        "claims[0].metric: no run has a metric 'test_acuracy'; did you mean");
  fails("{say: x, less: [{scheme.name: gpipe}, {scheme.name: pipedream}]}",
        "t.yaml:1:38: claims[0].less[0]: the runs with gpipe differ in pipeline.stages (2, 4); "
        "name one of its values");
  fails("{say: x, close: [{scheme.name: gpipe}, {scheme.name: pipedream}]}",
        "claims[0].within is missing; close needs the difference that does not matter");
  fails("{say: x, close: [{scheme.name: gpipe}, {scheme.name: pipedream}], within: 2}",
        "claims[0].within is 2, and test_accuracy is at most 1; two points are 0.02");
  fails("{say: x, learns: [{scheme.name: gpipe}], floor: 30}",
        "claims[0].floor is 30, and test_accuracy is at most 1");
  fails("{say: x, within: 1, diverges: [{scheme.name: gpipe}]}", "claims[0].within needs close");
  fails("{say: x, learns: [{scheme.name: pipedream}]}",
        "claims[0].floor is missing; learns and learns_nothing need the metric from which on");
  fails("{say: x, floor: 1, diverges: [{scheme.name: pipedream}]}",
        "claims[0].floor needs learns or learns_nothing");
  fails("{say: x, les: 1, diverges: [{scheme.name: gpipe}]}", "did you mean 'less'?");
}

/// The numbers are SciPy's: ttest_rel, pearsonr, permutation_test, ttest_1samp on either side, and
/// the power of nct.
TEST_F(ExperimentClaims, HaveAllTheirNumbersInJson) {
  add("gpipe", {"0.80", "0.70", "0.90", "0.85", "0.75"});
  add("pipedream", {"0.72", "0.66", "0.85", "0.86", "0.75"});
  const auto all =
      verdicts(concat("[{say: lower, ", std::string_view(kLess),
                      "}, {say: as good, close: [{scheme.name: gpipe}, {scheme.name: pipedream}], "
                      "within: 0.05}, {say: ends, finishes: [{scheme.name: gpipe}]}]"));
  TableSpec spec = read_table_spec(Value::mapping());
  const Value json = parse_json(results_json(make_table(spec, runs_), all), "json");
  const auto is = [&](int claim, const char* key, double expected) {
    const Value* found =
        json.find_path(concat("claims.", claim, ".tests.0.", std::string_view(key)));
    ASSERT_NE(found, nullptr) << key;
    const bool whole = found->is(Value::Kind::Integer);
    EXPECT_NEAR(whole ? static_cast<double>(found->integer) : found->number, expected,
                tolerance::kIntegral)
        << key;
  };
  const auto says = [&](const std::string& path, const char* expected) {
    ASSERT_NE(json.find_path(path), nullptr) << path;
    EXPECT_EQ(json.find_path(path)->text, expected) << path;
  };
  says("claims.0.say", "lower");
  says("claims.0.verdict", "not shown");
  says("claims.0.tests.0.kind", "less");
  says("claims.0.tests.0.metric", "test_accuracy");
  says("claims.0.tests.0.of", "gpipe");
  says("claims.0.tests.0.minus", "pipedream");
  says("claims.0.tests.0.interval_kind", "paired t");
  is(0, "n_of", 5);
  is(0, "n_minus", 5);
  is(0, "mean_of", 0.8);
  is(0, "mean_minus", 0.768);
  is(0, "effect", 0.032);
  is(0, "interval.0", -0.013958344113734575);
  is(0, "interval.1", 0.07795834411373459);
  is(0, "level", 0.95);
  is(0, "std_of_differences", 0.03701351104664352);
  is(0, "correlation", 0.9024690991376025);
  is(0, "wins", 3);
  is(0, "ties", 1);
  is(0, "losses", 1);
  is(0, "p", 0.12535460853443853);
  is(0, "p_holm", 2 * 0.12535460853443853);
  is(0, "p_sign_flips", 0.25);
  is(0, "detectable_effect", 0.062256613279816755);
  is(0, "detectable_effect_holm", 0.07587796775377499);
  EXPECT_TRUE(json.find_path("claims.0.tests.0.within")->is(Value::Kind::Null));
  is(1, "level", 0.9);
  is(1, "interval.0", -0.0032883433640873636);
  is(1, "interval.1", 0.06728834336408736);
  is(1, "within", 0.05);
  is(1, "p", 0.1689945938452155);
  is(1, "p_holm", 2 * 0.12535460853443853);  // adjusted p values never fall
  says("claims.2.tests.0.kind", "finishes");
  is(2, "hits", 5);
  is(2, "n", 5);
  is(2, "interval.0", std::pow(0.025, 0.2));
  is(2, "interval.1", 1);
}

TEST_F(ExperimentClaims, WithoutPairsHaveNoNumbersOfPairs) {
  add("gpipe", {"0.80", "0.70", "0.90"});
  add("pipedream", {"0.70", "0.61", ""});
  TableSpec spec = read_table_spec(Value::mapping());
  const auto all = verdicts(concat("[{say: x, ", std::string_view(kLess), "}]"));
  const Value json = parse_json(results_json(make_table(spec, runs_), all), "json");
  const Value* test = json.find_path("claims.0.tests.0");
  for (const char* key :
       {"paired", "mean_of", "effect", "level", "std_of_differences", "correlation", "wins", "p",
        "p_holm", "p_sign_flips", "detectable_effect", "detectable_effect_holm"})
    EXPECT_TRUE(test->find(key)->is(Value::Kind::Null)) << key;
  EXPECT_EQ(test->find("why")->text, "2 of 3 runs of pipedream done so far");
  const Value* cell = json.find_path("cells.1");
  EXPECT_EQ(cell->find("missing")->integer, 1);
  EXPECT_EQ(cell->find_path("values.1")->number, 0.61);
  EXPECT_EQ(cell->find_path("seeds.1")->text, "2");
}

TEST(PrintedVerdicts, StandBelowTheTableInEveryFormat) {
  const std::vector<Verdict> all{{"a|b falls by 5 %", Outcome::Held, "x"},
                                 {"c.", Outcome::NotShown, "y"}};
  const std::string markdown = print_verdicts(all, TableFormat::Markdown);
  EXPECT_NE(markdown.find("- held: a\\|b falls by 5 %. (x)\n- not shown: c. (y)\n"),
            std::string::npos)
      << markdown;
  const std::string latex = print_verdicts(all, TableFormat::Latex);
  EXPECT_NE(latex.find("  \\item held: a\\textbar{}b falls by 5 \\%. (x)\n"), std::string::npos)
      << latex;
  EXPECT_NE(print_verdicts(all, TableFormat::Csv).find("- held: a|b falls by 5 %. (x)\n"),
            std::string::npos);
  EXPECT_EQ(print_verdicts({}, TableFormat::Markdown), "");
}

}  // namespace
}  // namespace pipewright
