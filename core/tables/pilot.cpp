// SPDX-License-Identifier: Apache-2.0
#include "core/tables/pilot.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/statistics/tests.h"
#include "core/tables/run_keys.h"
#include "core/tables/verdicts.h"

namespace pipewright {
namespace {

constexpr const char* kPilotSeed = "train.seed";
constexpr double kPilotLevel = 0.05, kPilotPower = 0.8;

/// Whether the row has the run's label, where the sweep gives labels, and its values of all
/// settings that vary in both, but for the seed.
bool is_of(const ResultRow& row, const RunRecord& run, bool labelled) {
  return (!labelled || row.label == run.label) &&
         std::ranges::all_of(row.settings, [&](const auto& setting) {
           const auto& [key, text] = setting;
           return key == kPilotSeed || run.varied.find(key) == nullptr ||
                  key_text(run, key) == text;
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

std::size_t comparisons_of(const Claim& claim) {
  const std::size_t close = claim.close.size();
  return (claim.less.empty() ? 0 : claim.less.size() - 1) +
         (close == 0 ? 0 : close * (close - 1) / 2);
}

std::string points_text(double value, const std::string& metric) {
  return is_share(metric) ? printed("%.3g points", 100 * value) : printed("%.3g", value);
}

/// A sentence on the effects that so many pairs with the pilot's deviation can show.
std::string deviation_line(const ClaimTest& test, std::size_t pairs, std::size_t comparisons) {
  if (!test.paired) return test.compared ? "the pilot has no three pairs of equal seeds" : test.why;
  const auto found = [&](double level) {
    return points_text(detectable_effect(pairs, level, kPilotPower) * test.deviation, test.metric);
  };
  std::string text =
      concat("standard deviation ", points_text(test.deviation, test.metric), " of ", test.runs_of,
             " pairs; ", pairs, " seeds find ", found(kPilotLevel), " with 80 % probability, and ",
             found(kPilotLevel / static_cast<double>(comparisons)), " as one of ",
             counted(comparisons, "comparison"));
  if (test.kind != "close") return text;
  const double half = student_t(1 - 2 * kPilotLevel, static_cast<double>(pairs - 1)) *
                      test.deviation / std::sqrt(static_cast<double>(pairs));
  text += concat("; of two equal means the interval is ±", points_text(half, test.metric));
  if (half < test.within) return text;
  return concat(text, ". WARNING: it can never be shown within ",
                points_text(test.within, test.metric),
                ", whatever the truth; take more seeds or a wider margin");
}

}  // namespace

std::string pilot_text(const std::vector<Claim>& claims, const TableSpec& table,
                       const std::vector<RunRecord>& planned, const std::vector<ResultRow>& pilot) {
  const std::vector<RunRecord> runs = trained(planned, pilot, table.labelled);
  std::set<std::string> seeds;
  for (const RunRecord& run : planned) seeds.insert(key_text(run, kPilotSeed));
  std::size_t comparisons = 0;
  for (const Claim& claim : claims) comparisons += comparisons_of(claim);
  std::string text;
  for (const Claim& claim : claims) {
    if (comparisons_of(claim) == 0 || seeds.size() < 2) continue;
    try {
      for (const Verdict& verdict : judge({claim}, table, runs))
        for (const ClaimTest& test : verdict.tests)
          if (!test.minus.empty())
            text += concat("- ", claim.say, ": ", deviation_line(test, seeds.size(), comparisons),
                           "\n");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Experiment) throw;
      text += concat("- ", claim.say, ": the pilot has no runs of its groups\n");
    }
  }
  return text;
}

}  // namespace pipewright
