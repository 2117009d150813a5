// SPDX-License-Identifier: Apache-2.0
#include "core/tables/verdicts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

constexpr double kLevel = 0.05, kConfidence = 1 - kLevel, kPower = 0.8;
constexpr const char* kResolution = "resolution";  // of an interval where differences are constant

/// What a claim is about.
struct Measure {
  std::string metric, epoch;
  std::optional<double> failed_as = std::nullopt;  ///< of comparisons of means
};

/// The value of the only run with that seed.
std::optional<double> value_of(const SeededValues& values, const std::string& seed) {
  if (std::ranges::count(values.seeds, seed) != 1) return std::nullopt;
  const auto at = std::ranges::find(values.seeds, seed) - values.seeds.begin();
  return values.values[static_cast<std::size_t>(at)];
}

/// The mean of groups, seed by seed: of each seed that all of them have measured.
MeasuredGroup mean_of(const std::string& name, const std::vector<MeasuredGroup>& parts) {
  MeasuredGroup mean = parts.front();
  mean.name = name;
  mean.measured = {};
  mean.averages = true;
  for (const MeasuredGroup& part : parts) {
    mean.runs = std::min(mean.runs, part.runs);
    mean.done = std::min(mean.done, part.done);
    mean.diverged = std::max(mean.diverged, part.diverged);
    mean.failed = std::max(mean.failed, part.failed);
  }
  for (const std::string& seed : parts.front().measured.seeds) {
    std::vector<double> values;
    for (const MeasuredGroup& part : parts)
      if (const auto value = value_of(part.measured, seed)) values.push_back(*value);
    if (values.size() < parts.size()) continue;
    mean.measured.values.push_back(moments_of(values).mean);
    mean.measured.seeds.push_back(seed);
  }
  return mean;
}

std::string p_text(double p) {
  return printed(p < 1e-4 ? "%.0e" : "%.2g", p);
}

/// A margin may be far smaller than what two decimals show.
std::string margin_text(const std::string& metric, double margin) {
  return printed("%.4g", is_share(metric) ? 100 * margin : margin);
}

/// `failed_as`: what runs count with that have failed; none: they have no number.
MeasuredGroup gathered(const ClaimGroup& group, const Measure& measure,
                       const std::vector<RunRecord>& runs,
                       std::optional<double> failed_as = std::nullopt) {
  if (!group.parts.empty()) {
    std::vector<MeasuredGroup> parts;
    for (const ClaimGroup& part : group.parts)
      parts.push_back(gathered(part, measure, runs, failed_as));
    return mean_of(group.name(), parts);
  }
  MeasuredGroup all{.name = group.name(), .failed_count = failed_as.has_value()};
  for (const RunRecord& run : runs) {
    if (!group.has(run)) continue;
    ++all.runs;
    all.done += run.done() ? 1 : 0;
    all.diverged += run.diverged() ? 1 : 0;
    all.failed += run.state == "failed" ? 1 : 0;
    const std::optional<double> measured = metric_of(run, measure.metric, measure.epoch);
    if (const auto value = measured || run.state != "failed" ? measured : failed_as) {
      all.measured.values.push_back(*value);
      all.measured.seeds.push_back(key_text(run, "train.seed"));
    }
  }
  return all;
}

/// Records a problem if no run is in the group, though each of its values is that of some run
/// (check_claims() looks for these): of no run, everything could be claimed.
void check_present(const ClaimGroup& group, const std::vector<RunRecord>& runs,
                   Problems& problems) {
  const auto some_run_has = [&](const ClaimGroup& values) {
    return std::ranges::any_of(runs, [&](const RunRecord& run) { return values.has(run); });
  };
  const auto each_is_there = std::ranges::all_of(group.values, [&](const auto& value) {
    ClaimGroup only = group;
    only.values = {value};
    return some_run_has(only);
  });
  if (each_is_there && !some_run_has(group))
    problems.add(group.place, concat(group.option, ": no run has all of ", group.name()));
}

/// The setting, other than seed and label, in which two runs differ, whichever of them varies it.
std::optional<std::string> difference_of(const RunRecord& one, const RunRecord& other) {
  for (const RunRecord* const run : {&one, &other})
    for (const auto& [key, value] : run->varied.fields)
      if (key != "train.seed" && key != "label" && key_text(one, key) != key_text(other, key))
        return key;
  return std::nullopt;
}

/// Records a problem if the group's runs differ in more than their seed, or if two do not differ.
void check_alike(const ClaimGroup& group, const std::vector<RunRecord>& runs, Problems& problems) {
  const RunRecord* first = nullptr;
  std::set<std::string> seeds;
  for (const RunRecord& run : runs) {
    if (!group.has(run)) continue;
    if (first == nullptr) first = &run;
    if (const auto key = difference_of(*first, run))
      return problems.add(
          group.place,
          concat(group.option, ": the runs with ", group.name(), " differ in ", *key, " (",
                 key_text(*first, *key), ", ", key_text(run, *key), "); name one of its values"));
    const std::string seed = key_text(run, "train.seed");
    if (seed != kNoValue && !seeds.insert(seed).second)
      return problems.add(group.place, concat(group.option, ": two runs with ", group.name(),
                                              " have seed ", seed, "; name a label or a setting"));
  }
}

/// Why the runs of a group cannot be compared: "2 of 3 runs of gpipe diverged"; "" if all have
/// a finite metric and they differ in nothing but their seeds.
std::string lacking(const MeasuredGroup& group, const std::string& metric) {
  const auto measured = static_cast<int>(group.measured.values.size());
  const auto only = [&](int count, const std::string& what) {
    return concat(count, " of ", counted(group.runs, "run"), " of ", group.name, " ", what);
  };
  if (!group.mixed.empty())
    return concat(group.name, " mixes ", join(group.mixed, " and "),
                  ": its runs differ in more than their seeds");
  const int failed = group.failed_count ? 0 : group.failed;  // without a value
  const int ended = group.failed_count ? group.done + group.failed : group.done;
  if (failed > 0 && measured < group.runs)
    return group.diverged == failed ? only(failed, "diverged") : only(failed, "failed");
  if (ended < group.runs && measured < group.runs)
    return only(ended, ended == group.done ? "done so far" : "ended so far");
  if (measured < group.runs && group.averages)
    return concat("the groups of ", group.name, " share only ", counted(measured, "seed"));
  if (measured < group.runs) return only(group.runs - measured, "without the metric");
  const auto count_if = [&](const auto& is_so) {
    return static_cast<int>(std::ranges::count_if(group.measured.values, is_so));
  };
  if (const int none = count_if([](double value) { return value <= 0; });
      is_time_to(metric) && none > 0)
    return only(none, concat("with a ", metric, " of 0, to which there is no ratio"));
  const int unlike = count_if([](double value) { return !is_comparable(value); });
  if (unlike == 0) return {};
  if (is_time_to(metric))
    return only(unlike, unlike == 1 ? "has not reached the loss" : "have not reached the loss");
  return only(unlike, concat("with a ", metric, " that is not finite, or too large to compare"));
}

/// Whether the means differ by more than the margin. One of "within" and "beyond" is false; the p
/// of close is of the one that the means speak for.
bool is_beyond(const ClaimTest& test) {
  return std::abs(test.effect) > test.within;
}

/// Compares mean(a) − mean(b), or says why that is not known. `within`: the margin of close.
ClaimTest compared(const char* kind, const MeasuredGroup& a, const MeasuredGroup& b,
                   const std::string& metric, double within = kNoNumber) {
  ClaimTest test{.kind = kind,
                 .metric = metric,
                 .of = a.name,
                 .minus = b.name,
                 .runs_of = a.measured.values.size(),
                 .runs_minus = b.measured.values.size(),
                 .within = within};
  for (const MeasuredGroup* group : {&a, &b})
    if (test.why.empty()) test.why = lacking(*group, metric);
  if (!test.why.empty()) return test;
  test.ratio = is_time_to(metric);
  if (test.ratio && !std::isnan(within)) within = test.within = std::log1p(within);
  const auto measured = [&](SeededValues values) {
    if (test.ratio)
      for (double& value : values.values) value = std::log(value);
    return values;
  };
  const auto found = compare_means(measured(a.measured), measured(b.measured), is_share(metric));
  if (!found) {
    test.why = concat("fewer than 3 runs of ", test.runs_of < 3 ? a.name : b.name);
    return test;
  }
  const bool close = !std::isnan(within);
  test.compared = true;
  test.paired = found->paired();
  if (test.paired) {
    test.alone_of = test.runs_of - found->runs_a;
    test.alone_minus = test.runs_minus - found->runs_b;
  }
  test.runs_of = found->runs_a;
  test.runs_minus = found->runs_b;
  test.mean_of = found->mean_a;
  test.mean_minus = found->mean_b;
  test.effect = found->difference.mean;
  test.confidence = close ? 1 - 2 * kLevel : kConfidence;
  test.interval = found->interval(test.confidence);
  test.interval_kind = found->constant ? kResolution : test.paired ? "paired t" : "Welch t";
  test.resolution = found->resolution;
  test.p = !close            ? found->p()
           : is_beyond(test) ? found->p_beyond(within)
                             : found->p_of_margin(within);
  if (!test.paired) return test;
  test.deviation = found->constant ? 0 : moments_of(found->differences).std();
  test.correlation = found->correlation;
  for (const double difference : found->differences)
    ++(difference > 0 ? test.wins : difference < 0 ? test.losses : test.ties);
  if (found->differences.size() <= kMostSigns) test.p_signs = sign_flip_p(found->differences);
  return test;
}

/// "paired over 3 seeds, 3 runs of gpipe have no partner" or "Welch, 3 and 5 runs"
std::string pairing_text(const ClaimTest& test) {
  if (!test.paired)
    return concat("Welch, ", test.runs_of, " and ", counted(test.runs_minus, "run"));
  std::string text = concat("paired over ", counted(test.runs_of, "seed"));
  for (const auto& [alone, name] :
       {std::pair(test.alone_of, test.of), std::pair(test.alone_minus, test.minus)})
    if (alone > 0)
      text += concat(", ", counted(alone, "run"), " of ", name, alone == 1 ? " has" : " have",
                     " no partner");
  return text;
}

/// "gpipe (83.10) minus pipedream (71.20) is between 9.10 and 14.70 (95 %, paired over 5 seeds, p
/// 0.002, by signs 0.062)". `comparisons`: how many are decided together.
std::string comparison_text(const ClaimTest& test, std::size_t comparisons) {
  const auto number = [&](double value) {
    return shown_number(test.metric, test.ratio ? std::exp(value) : value);
  };
  const bool close = !std::isnan(test.within), constant = test.interval_kind == kResolution;
  std::string text =
      concat(test.of, " (", number(test.mean_of), test.ratio ? ") over " : ") minus ", test.minus,
             " (", number(test.mean_minus), ") is ");
  if (constant) {
    text +=
        concat(number(test.effect), test.paired ? concat(" in all ", counted(test.runs_of, "pair"))
                                                : ", and the runs of each are equal");
    if (!test.ratio && std::isfinite(test.resolution) && test.resolution > 0)
      text += concat(", where the metric tells values apart from ±", number(test.resolution));
  } else {
    text += concat("between ", number(test.interval.low), " and ", number(test.interval.high), " (",
                   std::lround(100 * test.confidence), " %, ", test.ratio ? "of logarithms, " : "",
                   pairing_text(test));
    if (!close) text += concat(", p ", p_text(test.p));
    if (!close && !std::isnan(test.p_signs)) text += concat(", by signs ", p_text(test.p_signs));
    text += ")";
  }
  if (close && test.ratio)
    text += concat(", where up to ", number(test.within), " times either way counts as close");
  if (close && !test.ratio)
    text += concat(", where ±", margin_text(test.metric, test.within), " counts as close");
  if (close && !constant)
    text += concat(", p ", p_text(test.p), is_beyond(test) ? " of lying beyond" : "");
  if (!close && test.p > kLevel && !std::isnan(test.detectable))
    text += concat(test.ratio ? "; a ratio of " : "; a difference of ", number(test.detectable),
                   " would be found with 80 % probability");
  return test.p > 0 && test.p <= kLevel && comparisons > 1 ? with_holm(text, test.p_adjusted)
                                                           : text;
}

/// Whether all runs of a group end as claimed: `hits` do, and `misses` do not; the others have not
/// ended. Fewer than three do not show it. `words`: what the hits did, "diverged".
ClaimTest ending(const char* kind, const MeasuredGroup& group, int hits, int misses,
                 const std::string& words, double floor = kNoNumber) {
  constexpr int kFewest = 3;
  ClaimTest test{
      .kind = kind,
      .of = group.name,
      .why = concat(hits, " of ", counted(group.runs, "run"), " of ", group.name, " ", words),
      .runs_of = static_cast<std::size_t>(group.runs),
      .hits = static_cast<std::size_t>(hits),
      .floor = floor};
  if (misses > 0)
    test.outcome = Outcome::NotHeld;
  else if (hits == group.runs && hits >= kFewest)
    test.outcome = Outcome::Held;
  if (group.runs == 0 || hits + misses < group.runs) return test;
  test.interval = proportion_interval(test.hits, test.runs_of, kConfidence);
  test.compared = true;
  test.interval_kind = "Clopper-Pearson";
  test.confidence = kConfidence;
  test.why += concat(" (95 %: ", std::lround(100 * test.interval.low), " to ",
                     std::lround(100 * test.interval.high), " % of all such runs)");
  return test;
}

/// Whether the runs of a group have learned, or have not.
ClaimTest learning(const MeasuredGroup& group, bool learns, double floor,
                   const std::string& metric) {
  const auto learned = static_cast<int>(std::ranges::count_if(
      group.measured.values, [&](double value) { return reaches(value, floor, metric); }));
  const int others = static_cast<int>(group.measured.values.size()) - learned + group.diverged;
  const std::string words = concat(" the ", metric, " ", margin_text(metric, floor));
  return learns ? ending("learns", group, learned, others, "reached" + words, floor)
                : ending("learns_nothing", group, others, learned, "did not reach" + words, floor);
}

std::vector<ClaimTest> tests_of(const Claim& claim, const Measure& measure,
                                const std::vector<RunRecord>& runs) {
  const auto all_of = [&](const std::vector<ClaimGroup>& groups,
                          std::optional<double> failed_as = std::nullopt) {
    std::vector<MeasuredGroup> all;
    for (const ClaimGroup& group : groups) all.push_back(gathered(group, measure, runs, failed_as));
    return all;
  };
  const std::string& metric = measure.metric;
  const std::vector<MeasuredGroup> less = all_of(claim.less, measure.failed_as),
                                   close = all_of(claim.close, measure.failed_as);
  std::vector<ClaimTest> tests;
  for (std::size_t i = 1; i < less.size(); ++i)
    tests.push_back(compared("less", less[i], less[i - 1], metric));
  for (std::size_t i = 0; i < close.size(); ++i)
    for (std::size_t j = i + 1; j < close.size(); ++j)
      tests.push_back(compared("close", close[i], close[j], metric, claim.within));
  for (const MeasuredGroup& group : all_of(claim.diverges))
    tests.push_back(ending("diverges", group, group.diverged, group.done, "diverged"));
  for (const MeasuredGroup& group : all_of(claim.finishes))
    tests.push_back(ending("finishes", group, group.done, group.diverged, "done"));
  for (const MeasuredGroup& group : all_of(claim.learns))
    tests.push_back(learning(group, true, claim.floor, metric));
  for (const MeasuredGroup& group : all_of(claim.learns_nothing))
    tests.push_back(learning(group, false, claim.floor, metric));
  return tests;
}

/// Turns what a comparison of logarithms has found into ratios.
void show_ratios(ClaimTest& test) {
  for (double* value : {&test.mean_of, &test.mean_minus, &test.effect, &test.interval.low,
                        &test.interval.high, &test.detectable, &test.detectable_adjusted})
    *value = std::exp(*value);
  test.within = std::expm1(test.within);
}

/// Decides the comparisons, such that the probability of any wrong decision is at most kLevel over
/// all of them (Holm), and adds which effects would have been found, and the sentences.
void decide(std::vector<std::vector<ClaimTest>>& tests) {
  std::vector<ClaimTest*> comparisons;
  std::vector<double> p;
  for (std::vector<ClaimTest>& of_claim : tests)
    for (ClaimTest& test : of_claim)
      if (test.compared && !test.minus.empty()) {
        comparisons.push_back(&test);
        p.push_back(test.p);
      }
  const std::vector<double> adjusted = holm_adjusted(p);
  const double shared = kLevel / static_cast<double>(std::max<std::size_t>(1, p.size()));
  std::map<std::size_t, std::pair<double, double>> effects;  // in deviations, by pairs
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    ClaimTest& test = *comparisons[i];
    test.p_adjusted = adjusted[i];
    if (adjusted[i] <= kLevel) {
      const bool held = std::isnan(test.within) ? test.effect > 0 : !is_beyond(test);
      test.outcome = held ? Outcome::Held : Outcome::NotHeld;
    }
    if (test.paired && test.deviation != 0) {
      const auto [known, added] = effects.try_emplace(test.runs_of);
      if (added)
        known->second = {detectable_effect(test.runs_of, kLevel, kPower),
                         detectable_effect(test.runs_of, shared, kPower)};
      test.detectable = known->second.first * test.deviation;
      test.detectable_adjusted = known->second.second * test.deviation;
    }
    test.why = comparison_text(test, comparisons.size());
    if (test.ratio) show_ratios(test);
  }
}

/// All tests must hold; one that is refuted decides.
Verdict verdict_of(const Claim& claim, std::vector<ClaimTest> tests) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::find(tests, outcome, &ClaimTest::outcome) != tests.end();
  };
  Verdict verdict{.say = claim.say, .outcome = Outcome::Held};
  if (any(Outcome::NotShown)) verdict.outcome = Outcome::NotShown;
  if (any(Outcome::NotHeld)) verdict.outcome = Outcome::NotHeld;
  std::vector<std::string> parts;
  for (const ClaimTest& test : tests)
    if (std::ranges::count(parts, test.why) == 0) parts.push_back(test.why);
  verdict.why = join(parts, "; ");
  verdict.tests = std::move(tests);
  return verdict;
}

/// Records problems with the claim's metric and groups.
void check_claim(const Claim& claim, double loss, const std::vector<RunRecord>& runs,
                 Problems& problems) {
  const std::string option = concat(claim.option, ".metric");
  if (!claim.metric.name.empty()) check_metric(claim.metric, option.c_str(), runs, problems);
  if (is_time_to(claim.metric.name) && loss == 0)
    problems.add(claim.metric.place, concat(option, ": ", claim.metric.name,
                                            " asks for a test loss; expected table.loss"));
  for (const ClaimGroup* group : claim.groups()) check_present(*group, runs, problems);
  for (const auto* groups : {&claim.less, &claim.close})
    for (const ClaimGroup& group : *groups)
      for (const ClaimGroup* part : group.single()) check_alike(*part, runs, problems);
  constexpr std::size_t kMostComparisons = 10'000;
  const std::size_t pairs = claim.close.size() * (claim.close.size() - 1) / 2;
  if (!claim.close.empty() && pairs > kMostComparisons)
    problems.add(claim.close.front().place,
                 concat(claim.option, ".close compares ", claim.close.size(), " groups in ", pairs,
                        " pairs; expected at most ", kMostComparisons, " pairs"));
}

constexpr const char* kHeading =
    "Claims, judged by t tests of differences of means (paired by seed where 3 seeds are in both, "
    "otherwise Welch's) at 5 % for all comparisons together (Holm)";

}  // namespace

std::string with_holm(const std::string& text, double adjusted) {
  constexpr std::string_view kCorrected = ", with Holm's correction ";
  const std::size_t at = text.find(kCorrected);
  const std::size_t end = at == text.npos ? at : text.find_first_of(",; ", at + kCorrected.size());
  return concat(text.substr(0, at), kCorrected, p_text(adjusted),
                end == text.npos ? "" : text.substr(end));
}

const char* words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Held: return "held";
    case Outcome::NotHeld: return "not held";
    case Outcome::NotShown: return "not shown";
  }
  return "";
}

std::vector<ClaimTest> compare_groups(
    const std::vector<std::pair<MeasuredGroup, MeasuredGroup>>& pairs, const std::string& metric) {
  std::vector<std::vector<ClaimTest>> tests(1);
  for (const auto& [of, minus] : pairs)
    tests.front().push_back(compared("against", of, minus, metric));
  decide(tests);
  return tests.front();
}

std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& records) {
  if (claims.empty()) return {};
  std::vector<std::string> metrics{table.metric.name};
  for (const Claim& claim : claims) metrics.push_back(claim.metric.name);
  const std::vector<RunRecord> derived = derived_added(records, metrics, table.loss);
  const std::vector<RunRecord>& runs = derived.empty() ? records : derived;
  const auto measure_of = [&](const Claim& claim) {
    const bool other = !claim.metric.name.empty() && claim.metric.name != table.metric.name;
    return Measure{other ? claim.metric.name : table.metric.name, table.epoch,
                   other ? std::nullopt : table.failed_as};
  };
  Problems problems;
  check_claims(claims, runs, problems);
  for (const Claim& claim : claims) check_claim(claim, table.loss, runs, problems);
  problems.throw_if_any();
  std::vector<std::vector<ClaimTest>> tests;
  for (const Claim& claim : claims) tests.push_back(tests_of(claim, measure_of(claim), runs));
  decide(tests);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < claims.size(); ++i)
    verdicts.push_back(verdict_of(claims[i], std::move(tests[i])));
  return verdicts;
}

std::string print_verdicts(const std::vector<Verdict>& verdicts, TableFormat format) {
  if (verdicts.empty()) return {};
  std::vector<std::string> sentences;
  for (const Verdict& verdict : verdicts)
    sentences.push_back(concat(words_of(verdict.outcome), ": ", verdict.say,
                               verdict.say.ends_with('.') ? "" : ".", " (", verdict.why, ")"));
  return print_list(kHeading, sentences, format);
}

}  // namespace pipewright
