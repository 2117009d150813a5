// SPDX-License-Identifier: Apache-2.0
#include "core/tables/pilot.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/statistics/tests.h"
#include "core/tables/best_over.h"
#include "core/tables/run_keys.h"
#include "core/tables/verdicts.h"

namespace pipewright {
namespace {

constexpr const char* kPilotSeed = "train.seed";
constexpr double kPilotLevel = 0.05, kPilotPower = 0.8;

/// Whether the row has the run's label, where the sweep gives labels, and its values of all
/// settings that the pilot varies, but for the seed.
bool is_of(const ResultRow& row, const RunRecord& run, bool labelled) {
  return (!labelled || row.label == run.label) &&
         std::ranges::all_of(row.settings, [&](const auto& setting) {
           const auto& [key, text] = setting;
           return key == kPilotSeed || !run.setting(key) || key_text(run, key) == text;
         });
}

/// The planned runs as the pilot has trained them, with its seeds.
std::vector<RunRecord> trained(const std::vector<RunRecord>& planned,
                               const std::vector<ResultRow>& pilot, bool labelled) {
  std::vector<RunRecord> runs;
  for (const ResultRow& row : pilot) {
    const auto seed = row.settings.find(kPilotSeed);
    const auto found = std::ranges::find_if(
        planned, [&](const RunRecord& run) { return is_of(row, run, labelled); });
    if (seed == row.settings.end() || found == planned.end()) continue;
    RunRecord& run = runs.emplace_back(*found);
    take_row(row, run);
    const auto number = parsed<std::int64_t>(seed->second);
    if (!number || *number < 0)
      throw Error(ErrorKind::Data, concat("a row of the pilot has ", kPilotSeed, " ", seed->second,
                                          "; expected an integer that is not negative"));
    run.varied.at_or_add(kPilotSeed) = Value::of(*number);
    if (run.config.known()) run.config = run.config.with_seed(*number);
  }
  return runs;
}

using GroupPair = std::pair<const ClaimGroup*, const ClaimGroup*>;

/// The groups whose means a claim compares, in the order of judge().
std::vector<GroupPair> comparisons_of(const Claim& claim) {
  std::vector<GroupPair> pairs;
  for (std::size_t i = 1; i < claim.less.size(); ++i)
    pairs.emplace_back(&claim.less[i], &claim.less[i - 1]);
  for (std::size_t i = 0; i < claim.close.size(); ++i)
    for (std::size_t j = i + 1; j < claim.close.size(); ++j)
      pairs.emplace_back(&claim.close[i], &claim.close[j]);
  return pairs;
}

/// How many seeds are planned for both groups, and for all parts of these.
std::size_t planned_pairs(const GroupPair& groups, const std::vector<RunRecord>& planned) {
  std::map<std::string, std::set<const ClaimGroup*>> groups_of;
  std::vector<const ClaimGroup*> all = groups.first->single();
  std::ranges::copy(groups.second->single(), std::back_inserter(all));
  for (const RunRecord& run : planned)
    for (const ClaimGroup* group : all)
      if (group->has(run)) groups_of[key_text(run, kPilotSeed)].insert(group);
  return static_cast<std::size_t>(std::ranges::count_if(
      groups_of, [&](const auto& seed) { return seed.second.size() == all.size(); }));
}

/// A difference, or of logarithms the ratio that it is.
std::string points_text(double value, const ClaimTest& test) {
  if (test.ratio) return printed("a ratio of %.3g", std::exp(value));
  return is_share(test.metric) ? printed("%.3g points", 100 * value) : printed("%.3g", value);
}

/// A sentence on the effects that so many pairs with the pilot's deviation can show.
std::string deviation_line(const ClaimTest& test, std::size_t pairs, std::size_t comparisons) {
  constexpr std::size_t kFewestPairs = 3;
  if (!test.paired) return test.compared ? "the pilot has no three pairs of equal seeds" : test.why;
  if (pairs < kFewestPairs)
    return concat("both groups are planned with ", counted(pairs, "seed"),
                  "; expected three or more, so that runs are compared in pairs");
  const auto found = [&](double level) {
    return points_text(detectable_effect(pairs, level, kPilotPower) * test.deviation, test);
  };
  std::string text =
      concat("standard deviation ",
             test.ratio ? printed("%.3g of the logarithms", test.deviation)
                        : points_text(test.deviation, test),
             " of ", test.runs_of, " pairs; ", pairs, " seeds find ", found(kPilotLevel),
             " with 80 % probability, and ", found(kPilotLevel / static_cast<double>(comparisons)),
             " as one of ", counted(comparisons, "comparison"));
  if (test.kind != "close") return text;
  const double half = student_t(1 - 2 * kPilotLevel, static_cast<double>(pairs - 1)) *
                      test.deviation / std::sqrt(static_cast<double>(pairs));
  const double within = test.ratio ? std::log1p(test.within) : test.within;
  text += concat("; of two equal means the interval is ", test.ratio ? "up to " : "±",
                 points_text(half, test), test.ratio ? " either way" : "");
  if (half < within) return text;
  return concat(text, ". WARNING: it can never be shown within ", points_text(within, test),
                ", whatever the truth; take more seeds or a wider margin");
}

/// The keys in which planned runs of one label differ, by label; without labels all are of "".
std::map<std::string, std::set<std::string>> keys_apart(const std::vector<RunRecord>& planned,
                                                        bool labelled) {
  std::map<std::string, const RunRecord*> first;
  std::map<std::string, std::set<std::string>> apart;
  for (const RunRecord& run : planned) {
    const std::string label = labelled ? run.label : "";
    const RunRecord& other = *first.emplace(label, &run).first->second;
    for (const auto& [key, value] : run.varied.fields)
      if (key != kPilotSeed && key != "label" && key_text(other, key) != key_text(run, key))
        apart[label].insert(key);
  }
  return apart;
}

/// The values of a setting that the pilot has tried in place of the run's.
std::vector<std::string> tried_for(const RunRecord& run, const std::string& key,
                                   const std::set<std::string>& apart, bool labelled,
                                   const std::vector<ResultRow>& pilot) {
  std::vector<std::string> tried;
  for (const ResultRow& row : pilot) {
    const auto value = row.settings.find(key);
    const bool same = std::ranges::all_of(apart, [&](const std::string& other) {
      const auto found = row.settings.find(other);
      return found == row.settings.end() || found->second == key_text(run, other);
    });
    if (value != row.settings.end() && same && (!labelled || row.label == run.label))
      tried.push_back(value->second);
  }
  return tried;
}

/// A line for each planned setting that is the smallest or the largest of those that the pilot has
/// tried for its runs. Settings that the plan itself varies are not chosen by the pilot.
std::string edge_lines(const std::vector<RunRecord>& planned, const std::vector<ResultRow>& pilot,
                       bool labelled) {
  std::set<std::string> keys;
  for (const ResultRow& row : pilot)
    for (const auto& [key, value] : row.settings)
      if (key != kPilotSeed) keys.insert(key);
  std::map<std::string, std::set<std::string>> apart_of = keys_apart(planned, labelled);
  std::set<std::vector<std::string>> told;
  std::string text;
  for (const RunRecord& run : planned) {
    const std::set<std::string>& apart = apart_of[labelled ? run.label : ""];
    std::vector<std::string> names;
    if (labelled) names.push_back(run.label);
    for (const std::string& key : apart) names.push_back(key_title(run, key));
    if (!told.insert(names).second) continue;  // another seed
    for (const std::string& key : keys) {
      if (apart.contains(key) || !run.setting(key)) continue;
      const std::string value = key_text(run, key);
      const std::string edge = tried_edge(value, tried_for(run, key, apart, labelled, pilot));
      if (edge.empty()) continue;
      text += concat("- WARNING: ", join(names, ", "), names.empty() ? "" : ": ", key, " ", value,
                     " is ", edge, " by the pilot; a better one may lie beyond it\n");
    }
  }
  return text;
}

}  // namespace

std::string pilot_text(const std::vector<Claim>& claims, const TableSpec& table,
                       const std::vector<RunRecord>& planned, const std::vector<ResultRow>& pilot) {
  const std::vector<RunRecord> runs = trained(planned, pilot, table.labelled);
  std::set<std::string> seeds;
  for (const RunRecord& run : planned) seeds.insert(key_text(run, kPilotSeed));
  std::size_t comparisons = 0;
  for (const Claim& claim : claims) comparisons += comparisons_of(claim).size();
  std::string text;
  for (const Claim& claim : claims) {
    const std::vector<GroupPair> pairs = comparisons_of(claim);
    if (pairs.empty() || seeds.size() < 2) continue;
    try {
      const std::vector<ClaimTest> tests = judge({claim}, table, runs).front().tests;
      for (std::size_t i = 0; i < pairs.size(); ++i)
        text += concat("- ", claim.say, ": ",
                       deviation_line(tests.at(i), planned_pairs(pairs[i], planned), comparisons),
                       "\n");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Experiment) throw;
      text += concat("- ", claim.say, ": the pilot has no runs of its groups\n");
    }
  }
  return text + edge_lines(planned, pilot, table.labelled);
}

}  // namespace pipewright
