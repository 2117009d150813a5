// SPDX-License-Identifier: Apache-2.0
#include "core/tables/best_over.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/tables/mean_difference.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

/// The runs of one group with one value of the key.
struct Candidate {
  std::string value;
  std::vector<double> held_out;
  bool complete = true;  ///< all runs with held-out samples are done and have a finite metric
  bool shown = false;    ///< some run would be shown
};

/// The candidates of each group, in order of first appearance.
using Candidates = std::vector<std::vector<Candidate>>;

Candidates candidates_of(const TableSpec& spec, const std::vector<RunRecord>& runs,
                         const std::vector<std::size_t>& group, std::size_t groups,
                         bool shows_held_out) {
  Candidates all(groups);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Candidate>& here = all[group[i]];
    const std::string value = key_text(runs[i], spec.best_over->name);
    auto found = std::ranges::find(here, value, &Candidate::value);
    if (found == here.end()) found = here.insert(here.end(), {.value = value});
    const bool held_out = has_held_out(runs[i]);
    found->shown = found->shown || held_out == shows_held_out;
    if (!held_out) continue;
    const auto metric = metric_of(runs[i], spec.chosen_by, spec.epoch);
    if (metric && (std::isfinite(*metric) || is_time_to(spec.chosen_by)))  // infinite: not reached
      found->held_out.push_back(*metric);
    else
      found->complete = false;
  }
  return all;
}

std::optional<BestValue> best_of(const std::vector<Candidate>& candidates, bool smaller) {
  std::optional<BestValue> best;
  for (const Candidate& each : candidates) {
    if (!each.complete || !each.shown || each.held_out.empty()) continue;
    const double mean = moments_of(each.held_out).mean;
    if (best && mean == best->mean)
      best->as_good.push_back(each.value);
    else if (!best || (smaller ? mean < best->mean : mean > best->mean))
      best = {.value = each.value, .mean = mean, .runs = each.held_out.size()};
  }
  std::vector<std::string> tried;
  for (const Candidate& each : candidates) tried.push_back(each.value);
  if (best) best->edge = tried_edge(best->value, tried);
  return best;
}

}  // namespace

std::string tried_edge(const std::string& value, const std::vector<std::string>& tried) {
  const auto chosen = parsed<double>(value);
  std::set<double> numbers;
  for (const std::string& text : tried) {
    const auto number = parsed<double>(text);
    if (!number) return {};
    numbers.insert(*number);
  }
  if (!chosen || numbers.size() < 2) return {};
  if (*chosen <= *numbers.begin()) return concat("the smallest of ", numbers.size(), " tried");
  if (*chosen >= *numbers.rbegin()) return concat("the largest of ", numbers.size(), " tried");
  return {};
}

bool has_held_out(const RunRecord& run) {
  const std::optional<Value> held_out = run.setting("loader.validation");
  return held_out && held_out->is(Value::Kind::Integer) && held_out->integer > 0;
}

BestChoice choose_best(const TableSpec& spec, const std::vector<RunRecord>& runs,
                       const std::vector<std::size_t>& group, std::size_t groups,
                       Problems& problems) {
  BestChoice choice{.shown = std::vector<bool>(runs.size(), true),
                    .best = std::vector<std::optional<BestValue>>(groups)};
  const auto held_out = std::ranges::count_if(runs, has_held_out);
  if (held_out == 0) {
    problems.add(spec.best_over->place,
                 concat("table.best_over: no run holds out training samples, and a value of ",
                        spec.best_over->name,
                        " that is chosen by test results makes these look too good; set "
                        "loader.validation: 200, or sweep loader.validation: [200, 0] to choose on "
                        "200 held-out samples and show test results"));
    return choice;
  }
  choice.shows_held_out = held_out == std::ssize(runs);
  const Candidates candidates = candidates_of(spec, runs, group, groups, choice.shows_held_out);
  const bool smaller = better_values(spec.chosen_by) == Better::Smaller;
  for (std::size_t g = 0; g < groups; ++g) choice.best[g] = best_of(candidates[g], smaller);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::optional<BestValue>& best = choice.best[group[i]];
    choice.shown[i] =
        has_held_out(runs[i]) == choice.shows_held_out &&
        (best ? key_text(runs[i], spec.best_over->name) == best->value : !runs[i].done());
  }
  return choice;
}

}  // namespace pipewright
