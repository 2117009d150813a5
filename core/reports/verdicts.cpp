// SPDX-License-Identifier: Apache-2.0
#include "core/reports/verdicts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/wording.h"
#include "core/reports/mean_difference.h"
#include "core/reports/moments.h"
#include "core/reports/probe_metrics.h"
#include "core/reports/run_keys.h"

namespace pipewright {
namespace {

/// The runs of a group, and what they measured.
struct Gathered {
  std::string name;
  int runs = 0, done = 0, diverged = 0;
  SeededValues measured;  ///< the metric of those that have it

  double mean() const { return moments_of(measured.values).mean; }
};

struct Finding {
  Outcome outcome = Outcome::NotShown;
  std::string why;
};

/// The metric of a claim and how it is shown.
struct Shown {
  std::string metric, epoch;

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

Gathered gathered(const ClaimGroup& group, const Shown& shown, const std::vector<RunRecord>& runs) {
  Gathered all{.name = group.name(), .measured = {}};
  for (const RunRecord& run : runs) {
    if (!group.has(run)) continue;
    ++all.runs;
    all.done += run.done() ? 1 : 0;
    all.diverged += run.diverged() ? 1 : 0;
    if (const auto value = metric_of(run, shown.metric, shown.epoch)) {
      all.measured.values.push_back(*value);
      all.measured.seeds.push_back(key_text(run, "train.seed"));
    }
  }
  return all;
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

/// "2 of 3 runs of gpipe diverged"; "" if all have the metric.
std::string lacking(const Gathered& group) {
  const auto measured = static_cast<int>(group.measured.values.size());
  if (measured == group.runs) return {};
  const auto of = [&](int count, const char* what) {
    return concat(count, " of ", counted(group.runs, "run"), " of ", group.name, " ",
                  std::string_view(what));
  };
  if (group.diverged > 0) return of(group.diverged, "diverged");
  return group.done < group.runs ? of(group.done, "done so far")
                                 : of(group.runs - measured, "without the metric");
}

/// The interval of mean(a) − mean(b), or why there is none.
struct Compared {
  std::optional<Interval> interval;
  std::string missing;
};

Compared compared(const Gathered& a, const Gathered& b) {
  for (const Gathered* group : {&a, &b})
    if (const std::string why = lacking(*group); !why.empty()) return {std::nullopt, why};
  const auto interval = mean_difference(a.measured, b.measured);
  if (interval) return {interval, {}};
  return {std::nullopt,
          concat("fewer than 3 runs of ", a.measured.values.size() < 3 ? a.name : b.name)};
}

/// "gpipe (83.10) minus pipedream (71.20) is between 9.10 and 14.70"
std::string difference_text(const Gathered& a, const Gathered& b, const Interval& interval,
                            const Shown& shown) {
  return concat(a.name, " (", shown.text(a.mean()), ") minus ", b.name, " (", shown.text(b.mean()),
                ") is between ", shown.text(interval.low), " and ", shown.text(interval.high));
}

/// Whether mean(a) < mean(b).
Finding is_less(const Gathered& a, const Gathered& b, const Shown& shown) {
  const Compared both = compared(b, a);
  if (!both.interval) return {Outcome::NotShown, both.missing};
  const Outcome outcome = both.interval->low > 0    ? Outcome::Held
                          : both.interval->high < 0 ? Outcome::NotHeld
                                                    : Outcome::NotShown;
  return {outcome, difference_text(b, a, *both.interval, shown)};
}

/// Whether the means differ by less than `within`.
Finding is_close(const Gathered& a, const Gathered& b, double within, const Shown& shown) {
  const Compared both = compared(a, b);
  if (!both.interval) return {Outcome::NotShown, both.missing};
  const auto [low, high] = *both.interval;
  const Outcome outcome = -within < low && high < within   ? Outcome::Held
                          : low > within || high < -within ? Outcome::NotHeld
                                                           : Outcome::NotShown;
  return {outcome, concat(difference_text(a, b, *both.interval, shown), ", where ±",
                          shown.margin(within), " counts as close")};
}

Finding ends(const Gathered& group, bool diverging) {
  const int wanted = diverging ? group.diverged : group.done;
  const int against = diverging ? group.done : group.diverged;
  const Outcome outcome = wanted == group.runs ? Outcome::Held
                          : against > 0        ? Outcome::NotHeld
                                               : Outcome::NotShown;
  return {outcome, concat(wanted, " of ", counted(group.runs, "run"), " of ", group.name,
                          diverging ? " diverged" : " done")};
}

std::vector<Finding> findings(const Claim& claim, const Shown& shown,
                              const std::vector<RunRecord>& runs) {
  const auto all_of = [&](const std::vector<ClaimGroup>& groups) {
    std::vector<Gathered> all;
    for (const ClaimGroup& group : groups) all.push_back(gathered(group, shown, runs));
    return all;
  };
  std::vector<Finding> found;
  const std::vector<Gathered> less = all_of(claim.less), close = all_of(claim.close);
  for (std::size_t i = 1; i < less.size(); ++i)
    found.push_back(is_less(less[i - 1], less[i], shown));
  for (std::size_t i = 0; i < close.size(); ++i)
    for (std::size_t j = i + 1; j < close.size(); ++j)
      found.push_back(is_close(close[i], close[j], claim.within, shown));
  for (const Gathered& group : all_of(claim.diverges)) found.push_back(ends(group, true));
  for (const Gathered& group : all_of(claim.finishes)) found.push_back(ends(group, false));
  return found;
}

/// All findings must hold; one that is refuted decides.
Verdict verdict_of(const Claim& claim, const std::vector<Finding>& found) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::find(found, outcome, &Finding::outcome) != found.end();
  };
  Verdict verdict{.say = claim.say, .outcome = Outcome::Held, .why = {}};
  if (any(Outcome::NotShown)) verdict.outcome = Outcome::NotShown;
  if (any(Outcome::NotHeld)) verdict.outcome = Outcome::NotHeld;
  std::vector<std::string> parts;
  for (const Finding& finding : found)
    if (std::ranges::count(parts, finding.why) == 0) parts.push_back(finding.why);
  verdict.why = join(parts, "; ");
  return verdict;
}

/// Records problems with the claim's metric and groups.
void check_claim(const Claim& claim, const std::vector<RunRecord>& runs, Problems& problems) {
  const std::string option = concat(claim.option, ".metric");
  if (!claim.metric.name.empty()) check_metric(claim.metric, option.c_str(), runs, problems);
  for (const auto* groups : {&claim.less, &claim.close})
    for (const ClaimGroup& group : *groups) check_alike(group, runs, problems);
}

const char* words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Held: return "held";
    case Outcome::NotHeld: return "not held";
    case Outcome::NotShown: return "not shown";
  }
  return "";
}

constexpr const char* kHeading =
    "Claims, each judged by itself by 95 % intervals of differences of means (paired by seed where "
    "3 seeds are in both, otherwise Welch's)";

}  // namespace

std::vector<Verdict> judge(const std::vector<Claim>& claims, const TableSpec& table,
                           const std::vector<RunRecord>& records) {
  if (claims.empty()) return {};
  std::vector<std::string> metrics{table.metric.name};
  for (const Claim& claim : claims) metrics.push_back(claim.metric.name);
  const std::vector<RunRecord> with_probes = probe_columns_added(records, metrics);
  const std::vector<RunRecord>& runs = with_probes.empty() ? records : with_probes;
  const auto shown_of = [&](const Claim& claim) {
    return Shown{claim.metric.name.empty() ? table.metric.name : claim.metric.name, table.epoch};
  };
  Problems problems;
  check_claims(claims, runs, problems);
  for (const Claim& claim : claims) check_claim(claim, runs, problems);
  problems.throw_if_any();
  std::vector<Verdict> verdicts;
  for (const Claim& claim : claims)
    verdicts.push_back(verdict_of(claim, findings(claim, shown_of(claim), runs)));
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
