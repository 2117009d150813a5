// SPDX-License-Identifier: Apache-2.0
#include "core/tables/verdicts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/wording.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr double kLevel = 0.05, kConfidence = 1 - kLevel, kPower = 0.8;
constexpr std::size_t kMostSigns = 20;  // of sign_flip_p()

/// One comparison that a claim asks for.
struct Finding {
  Outcome outcome = Outcome::NotShown;
  std::string why;
  /// The p of what the claim says, if a test decides it: the outcome is then that of
  /// `if_significant`, provided that p is small enough for all comparisons together.
  std::optional<double> p;
  Outcome if_significant = Outcome::Held;
  ClaimTest test = {};
};

/// The metric of a claim and how it is shown.
struct Shown {
  std::string metric, epoch;
  std::optional<double> failed_as = std::nullopt;  ///< of comparisons of means

  std::string text(double value) const {
    return printed(value, is_share(metric) ? "%.2f" : "%.4g");
  }
  /// A margin, which may be far smaller than what two decimals show.
  std::string margin(double value) const { return printed(value, "%.4g"); }

 private:
  std::string printed(double value, const char* format) const {
    std::array<char, 64> digits{};
    std::snprintf(digits.data(), digits.size(), format, is_share(metric) ? 100 * value : value);
    return digits.data();
  }
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
  for (const MeasuredGroup& part : parts) {
    mean.runs = std::min(mean.runs, part.runs);
    mean.done = std::min(mean.done, part.done);
    mean.diverged = std::max(mean.diverged, part.diverged);
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

/// `failed_as`: what runs count with that have failed; none: they have no number.
MeasuredGroup gathered(const ClaimGroup& group, const Shown& shown,
                       const std::vector<RunRecord>& runs,
                       std::optional<double> failed_as = std::nullopt) {
  if (!group.parts.empty()) {
    std::vector<MeasuredGroup> parts;
    for (const ClaimGroup& part : group.parts)
      parts.push_back(gathered(part, shown, runs, failed_as));
    return mean_of(group.name(), parts);
  }
  MeasuredGroup all{.name = group.name(), .measured = {}};
  for (const RunRecord& run : runs) {
    if (!group.has(run)) continue;
    ++all.runs;
    all.done += run.done() ? 1 : 0;
    all.diverged += run.diverged() ? 1 : 0;
    const std::optional<double> measured = metric_of(run, shown.metric, shown.epoch);
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

/// Records a problem if the group's runs differ in more than their seed.
void check_alike(const ClaimGroup& group, const std::vector<RunRecord>& runs, Problems& problems) {
  const RunRecord* first = nullptr;
  for (const RunRecord& run : runs) {
    if (!group.has(run)) continue;
    if (first == nullptr) first = &run;
    for (const auto& [key, value] : run.varied.fields) {
      if (key == "train.seed" || key == "label" || key_text(run, key) == key_text(*first, key))
        continue;
      problems.add(group.place, concat(group.option, ": the runs with ", group.name(),
                                       " differ in ", key, " (", key_text(*first, key), ", ",
                                       key_text(run, key), "); name one of its values"));
      return;
    }
  }
}

/// Why the runs of a group cannot be compared: "2 of 3 runs of gpipe diverged"; "" if all have
/// a finite metric and they differ in nothing but their seeds.
std::string lacking(const MeasuredGroup& group, const Shown& shown) {
  const auto measured = static_cast<int>(group.measured.values.size());
  const auto of = [&](int count, const std::string& what) {
    return concat(count, " of ", counted(group.runs, "run"), " of ", group.name, " ", what);
  };
  if (!group.mixed.empty())
    return concat(group.name, " mixes ", join(group.mixed, " and "),
                  ": its runs differ in more than their seeds");
  if (group.diverged > 0 && measured < group.runs) return of(group.diverged, "diverged");
  if (measured < group.runs)
    return group.done < group.runs ? of(group.done, "done so far")
                                   : of(group.runs - measured, "without the metric");
  const auto infinite = std::ranges::count_if(group.measured.values,
                                              [](double value) { return !std::isfinite(value); });
  if (infinite == 0) return {};
  return of(static_cast<int>(infinite), concat("with a ", shown.metric, " that is not finite"));
}

/// mean(a) − mean(b), or why it is not known.
struct Compared {
  std::optional<Comparison> comparison;
  std::string missing;
};

Compared compared(const MeasuredGroup& a, const MeasuredGroup& b, const Shown& shown) {
  for (const MeasuredGroup* group : {&a, &b})
    if (const std::string why = lacking(*group, shown); !why.empty()) return {std::nullopt, why};
  if (const auto comparison = compare_means(a.measured, b.measured, is_share(shown.metric)))
    return {comparison, {}};
  return {std::nullopt,
          concat("fewer than 3 runs of ", a.measured.values.size() < 3 ? a.name : b.name)};
}

std::string p_text(double p) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), p < 1e-4 ? "%.0e" : "%.2g", p);
  return digits.data();
}

/// "paired over 3 seeds, 3 runs of gpipe have no partner" or "Welch, 3 and 5 runs"
std::string pairing_text(const MeasuredGroup& a, const MeasuredGroup& b, const Comparison& of) {
  if (!of.paired()) return concat("Welch, ", of.runs_a, " and ", counted(of.runs_b, "run"));
  std::string text = concat("paired over ", counted(of.runs_a, "seed"));
  for (const MeasuredGroup* group : {&a, &b})
    if (const std::size_t left = group->measured.values.size() - of.runs_a; left > 0)
      text += concat(", ", counted(left, "run"), " of ", group->name, left == 1 ? " has" : " have",
                     " no partner");
  return text;
}

/// "gpipe (83.10) minus pipedream (71.20) is between 9.10 and 14.70 (95 %, paired over 5 seeds, p
/// 0.002, by signs 0.062)"
std::string difference_text(const MeasuredGroup& a, const MeasuredGroup& b, const Comparison& of,
                            double confidence, const Shown& shown) {
  const Interval interval = of.interval(confidence);
  std::string text = concat(a.name, " (", shown.text(of.mean_a), ") minus ", b.name, " (",
                            shown.text(of.mean_b), ")");
  if (of.constant) {
    text += concat(" is ", shown.text(of.difference.mean));
    text += of.paired() ? concat(" in all ", counted(of.runs_a, "pair"))
                        : std::string(", and the runs of each are equal");
    return std::isfinite(of.resolution) && of.resolution > 0
               ? concat(text, ", where the metric tells values apart from ±",
                        shown.text(of.resolution))
               : text;
  }
  text += concat(" is between ", shown.text(interval.low), " and ", shown.text(interval.high), " (",
                 std::lround(100 * confidence), " %, ", pairing_text(a, b, of));
  if (confidence == kConfidence) text += concat(", p ", p_text(of.p()));
  if (of.paired() && of.differences.size() <= kMostSigns && confidence == kConfidence)
    text += concat(", by signs ", p_text(sign_flip_p(of.differences)));
  return text + ")";
}

/// The difference that so many pairs would show with a probability of 80 %.
std::string detectable_text(const Comparison& of, const Shown& shown) {
  if (!of.paired() || of.constant) return {};
  const double n = static_cast<double>(of.differences.size());
  const double deviation = of.difference.standard_error * std::sqrt(n);
  return concat("; a difference of ",
                shown.text(detectable_effect(of.differences.size(), kLevel, kPower) * deviation),
                " would be found with 80 % probability");
}

/// The numbers of a comparison of mean(a) − mean(b).
ClaimTest test_of(const MeasuredGroup& a, const MeasuredGroup& b, const Compared& both,
                  double confidence, const Shown& shown) {
  ClaimTest test{.metric = shown.metric, .of = a.name, .minus = b.name};
  if (!both.comparison) {
    test.runs_of = a.measured.values.size();
    test.runs_minus = b.measured.values.size();
    return test;
  }
  const Comparison& of = *both.comparison;
  test.compared = true;
  test.paired = of.paired();
  test.runs_of = of.runs_a;
  test.runs_minus = of.runs_b;
  test.mean_of = of.mean_a;
  test.mean_minus = of.mean_b;
  test.effect = of.difference.mean;
  test.interval = of.interval(confidence);
  test.interval_kind = of.constant ? "resolution" : of.paired() ? "paired t" : "Welch t";
  test.confidence = confidence;
  if (!of.paired()) return test;
  test.deviation = of.constant ? 0 : moments_of(of.differences).std();
  test.correlation = of.correlation;
  for (const double difference : of.differences)
    ++(difference > 0 ? test.wins : difference < 0 ? test.losses : test.ties);
  if (of.differences.size() <= kMostSigns) test.p_signs = sign_flip_p(of.differences);
  return test;
}

/// Whether mean(a) < mean(b).
Finding is_less(const MeasuredGroup& a, const MeasuredGroup& b, const Shown& shown) {
  const Compared both = compared(b, a, shown);
  ClaimTest test = test_of(b, a, both, kConfidence, shown);
  test.kind = "less";
  if (!both.comparison) return {Outcome::NotShown, both.missing, std::nullopt, {}, test};
  const Comparison& of = *both.comparison;
  test.p = of.p();
  std::string why = difference_text(b, a, of, kConfidence, shown);
  if (of.p() > kLevel) why += detectable_text(of, shown);
  return {Outcome::NotShown, why, of.p(), of.difference.mean > 0 ? Outcome::Held : Outcome::NotHeld,
          test};
}

/// Whether the means differ by less than `within`, by two one-sided tests.
Finding is_close(const MeasuredGroup& a, const MeasuredGroup& b, double within,
                 const Shown& shown) {
  const Compared both = compared(a, b, shown);
  ClaimTest test = test_of(a, b, both, 1 - 2 * kLevel, shown);
  test.kind = "close";
  test.within = within;
  if (!both.comparison) return {Outcome::NotShown, both.missing, std::nullopt, {}, test};
  const Comparison& of = *both.comparison;
  std::string why = concat(difference_text(a, b, of, 1 - 2 * kLevel, shown), ", where ±",
                           shown.margin(within), " counts as close");
  // One of "within" and "beyond" is false. The p is of the one that the mean speaks for.
  const bool beyond = std::abs(of.difference.mean) > within;
  test.p = beyond ? of.p_beyond(within) : of.p_of_margin(within);
  if (!of.constant) why += concat(", p ", p_text(test.p), beyond ? " of lying beyond" : "");
  return {Outcome::NotShown, why, test.p, beyond ? Outcome::NotHeld : Outcome::Held, test};
}

/// Of the runs of a group, how many end as claimed, and how many otherwise; the rest have not
/// ended.
struct Ends {
  std::string kind;  ///< the condition
  int wanted = 0, against = 0;
  std::string words;  ///< "diverged"
  double floor = kNoNumber;
};

/// How many runs of the group have learned, and how many have not, by the metric.
Ends learning_ends(const MeasuredGroup& group, bool learning, double floor, const Shown& shown) {
  const auto learned = static_cast<int>(std::ranges::count_if(
      group.measured.values, [&](double value) { return reaches(value, floor, shown.metric); }));
  const int others = static_cast<int>(group.measured.values.size()) - learned + group.diverged;
  const std::string words = concat(" the ", shown.metric, " ", shown.margin(floor));
  if (learning) return {"learns", learned, others, "reached" + words, floor};
  return {"learns_nothing", others, learned, "did not reach" + words, floor};
}

/// Whether all runs of the group end as claimed. Fewer than three do not show it.
Finding ends(const MeasuredGroup& group, const Ends& how) {
  constexpr int kFewest = 3;
  const Outcome outcome = how.against > 0                                     ? Outcome::NotHeld
                          : how.wanted == group.runs && group.runs >= kFewest ? Outcome::Held
                                                                              : Outcome::NotShown;
  std::string why =
      concat(how.wanted, " of ", counted(group.runs, "run"), " of ", group.name, " ", how.words);
  ClaimTest test{.kind = how.kind,
                 .of = group.name,
                 .runs_of = static_cast<std::size_t>(group.runs),
                 .hits = static_cast<std::size_t>(how.wanted),
                 .floor = how.floor};
  if (how.wanted + how.against == group.runs) {  // all have ended
    const auto [low, high] = test.interval =
        proportion_interval(test.hits, test.runs_of, kConfidence);
    test.compared = true;
    test.interval_kind = "Clopper-Pearson";
    test.confidence = kConfidence;
    why += concat(" (95 %: ", std::lround(100 * low), " to ", std::lround(100 * high),
                  " % of all such runs)");
  }
  return {outcome, why, std::nullopt, {}, test};
}

std::vector<Finding> findings(const Claim& claim, const Shown& shown,
                              const std::vector<RunRecord>& runs) {
  const auto all_of = [&](const std::vector<ClaimGroup>& groups,
                          std::optional<double> failed_as = std::nullopt) {
    std::vector<MeasuredGroup> all;
    for (const ClaimGroup& group : groups) all.push_back(gathered(group, shown, runs, failed_as));
    return all;
  };
  std::vector<Finding> found;
  const std::vector<MeasuredGroup> less = all_of(claim.less, shown.failed_as),
                                   close = all_of(claim.close, shown.failed_as);
  for (std::size_t i = 1; i < less.size(); ++i)
    found.push_back(is_less(less[i - 1], less[i], shown));
  for (std::size_t i = 0; i < close.size(); ++i)
    for (std::size_t j = i + 1; j < close.size(); ++j)
      found.push_back(is_close(close[i], close[j], claim.within, shown));
  for (const MeasuredGroup& group : all_of(claim.diverges))
    found.push_back(ends(group, {"diverges", group.diverged, group.done, "diverged"}));
  for (const MeasuredGroup& group : all_of(claim.finishes))
    found.push_back(ends(group, {"finishes", group.done, group.diverged, "done"}));
  for (const MeasuredGroup& group : all_of(claim.learns))
    found.push_back(ends(group, learning_ends(group, true, claim.floor, shown)));
  for (const MeasuredGroup& group : all_of(claim.learns_nothing))
    found.push_back(ends(group, learning_ends(group, false, claim.floor, shown)));
  return found;
}

/// Decides what tests decide, such that the probability of any wrong decision is at most kLevel
/// over all comparisons of all claims (Holm).
void decide(std::vector<std::vector<Finding>>& found) {
  std::vector<Finding*> tested;
  std::vector<double> p;
  for (std::vector<Finding>& of_claim : found)
    for (Finding& finding : of_claim)
      if (finding.p) {
        tested.push_back(&finding);
        p.push_back(*finding.p);
      }
  const std::vector<double> adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->test.p_adjusted = adjusted[i];
    if (adjusted[i] <= kLevel) tested[i]->outcome = tested[i]->if_significant;
    if (p[i] > 0 && p[i] <= kLevel && tested.size() > 1)
      tested[i]->why += concat(", with Holm's correction ", p_text(adjusted[i]));
  }
}

/// Adds which effects would have been found, alone and among all comparisons.
void add_detectable(std::vector<std::vector<Finding>>& found) {
  std::size_t comparisons = 0;
  for (const std::vector<Finding>& of_claim : found)
    for (const Finding& finding : of_claim) comparisons += finding.p ? 1 : 0;
  const double shared = kLevel / static_cast<double>(std::max<std::size_t>(1, comparisons));
  std::map<std::size_t, std::pair<double, double>> effects;  // in deviations, by pairs
  for (std::vector<Finding>& of_claim : found)
    for (Finding& finding : of_claim) {
      ClaimTest& test = finding.test;
      if (!test.paired || test.deviation == 0) continue;
      const auto [known, added] = effects.try_emplace(test.runs_of);
      if (added)
        known->second = {detectable_effect(test.runs_of, kLevel, kPower),
                         detectable_effect(test.runs_of, shared, kPower)};
      test.detectable = known->second.first * test.deviation;
      test.detectable_adjusted = known->second.second * test.deviation;
    }
}

/// All findings must hold; one that is refuted decides.
Verdict verdict_of(const Claim& claim, const std::vector<Finding>& found) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::find(found, outcome, &Finding::outcome) != found.end();
  };
  Verdict verdict{.say = claim.say, .outcome = Outcome::Held, .why = {}, .tests = {}};
  if (any(Outcome::NotShown)) verdict.outcome = Outcome::NotShown;
  if (any(Outcome::NotHeld)) verdict.outcome = Outcome::NotHeld;
  std::vector<std::string> parts;
  for (const Finding& finding : found) {
    if (std::ranges::count(parts, finding.why) == 0) parts.push_back(finding.why);
    ClaimTest& test = verdict.tests.emplace_back(finding.test);
    test.outcome = finding.outcome;
    test.why = finding.why;
  }
  verdict.why = join(parts, "; ");
  return verdict;
}

/// Records problems with the claim's metric and groups.
void check_claim(const Claim& claim, const std::vector<RunRecord>& runs, Problems& problems) {
  const std::string option = concat(claim.option, ".metric");
  if (!claim.metric.name.empty()) check_metric(claim.metric, option.c_str(), runs, problems);
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
  std::vector<std::vector<Finding>> found(1);
  for (const auto& [of, minus] : pairs)
    found.front().push_back(is_less(minus, of, {.metric = metric, .epoch = {}}));
  decide(found);
  add_detectable(found);
  std::vector<ClaimTest> tests;
  for (const Finding& finding : found.front()) {
    ClaimTest& test = tests.emplace_back(finding.test);
    test.kind = "against";
    test.outcome = finding.outcome;
    test.why = finding.why;
  }
  return tests;
}

std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& records) {
  if (claims.empty()) return {};
  std::vector<std::string> metrics{table.metric.name};
  for (const Claim& claim : claims) metrics.push_back(claim.metric.name);
  const std::vector<RunRecord> with_probes = probe_columns_added(records, metrics);
  const std::vector<RunRecord>& runs = with_probes.empty() ? records : with_probes;
  const auto shown_of = [&](const Claim& claim) {
    const bool other = !claim.metric.name.empty() && claim.metric.name != table.metric.name;
    return Shown{other ? claim.metric.name : table.metric.name, table.epoch,
                 other ? std::nullopt : table.failed_as};
  };
  Problems problems;
  check_claims(claims, runs, problems);
  for (const Claim& claim : claims) check_claim(claim, runs, problems);
  problems.throw_if_any();
  std::vector<std::vector<Finding>> found;
  for (const Claim& claim : claims) found.push_back(findings(claim, shown_of(claim), runs));
  decide(found);
  add_detectable(found);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < claims.size(); ++i)
    verdicts.push_back(verdict_of(claims[i], found[i]));
  return verdicts;
}

std::string print_verdicts(const std::vector<Verdict>& verdicts, TableFormat format) {
  if (verdicts.empty()) return {};
  const bool latex = format == TableFormat::Latex;
  const auto escaped = format == TableFormat::Markdown ? markdown_text : latex_text;
  std::string text = latex ? concat(latex_text(kHeading), ":\n\\begin{itemize}\n")
                           : concat(std::string_view(kHeading), ":\n");
  for (const Verdict& verdict : verdicts) {
    const std::string said = concat(verdict.say, verdict.say.ends_with('.') ? "" : ".");
    text += concat(latex ? "  \\item " : "- ", std::string_view(words_of(verdict.outcome)), ": ",
                   format == TableFormat::Csv ? said : escaped(said), " (",
                   format == TableFormat::Csv ? verdict.why : escaped(verdict.why), ")\n");
  }
  return latex ? text + "\\end{itemize}\n" : text;
}

}  // namespace pipewright
