// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_stability.h"

#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/reading.h"
#include "core/sweep/point_reader.h"
#include "core/sweep/sweep_plan.h"
#include "core/sweep/varied.h"

namespace pipewright {
namespace {

/// The first point of each group that differs in the seed alone, with the sizes of the groups.
struct Groups {
  std::vector<SweepPoint> firsts;
  std::vector<int> sizes;
};

Groups groups_of(const std::vector<SweepPoint>& points) {
  Groups groups;
  std::map<std::string, std::size_t> known;
  for (const SweepPoint& point : points) {
    const std::string key = key_but_seed(point.document).value_or(key_of(point.document));
    const auto [group, added] = known.emplace(key, groups.firsts.size());
    if (added)
      std::erase_if(groups.firsts.emplace_back(point).varied,
                    [](const auto& varied) { return varied.first == "train.seed"; });
    if (added) groups.sizes.push_back(0);
    ++groups.sizes[group->second];
  }
  return groups;
}

/// Finds the edge of a point, and adds the names of the gradient rules that it leaves out.
void find_edge(const SweepPoint& point, const SweepStabilitySettings& settings, SweptEdge& edge,
               std::set<std::string>& rules, KnownForms& forms) {
  try {
    const Experiment experiment = read_experiment(point.document, {}, forms);
    std::optional<Dynamics> dynamics = dynamics_of(experiment);
    if (!dynamics) {
      edge.reason = no_recurrence(experiment);
      return;
    }
    dynamics->discrepancy = settings.discrepancy;
    take(stability_report(*dynamics), edge);
    for (const std::string& rule : rules_beyond_edges(experiment)) rules.insert(rule);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    edge.reason = join(split(error.message(), '\n'), "; ");
  }
}

}  // namespace

SweptEdges sweep_stability(const Value& document, const SweepStabilitySettings& settings) {
  const Groups groups = groups_of(points_of(document, "takes"));
  SweptEdges sweep;
  std::set<std::string> rules;
  KnownForms forms;
  if (const Value* name = document.find("name")) sweep.name = name->text;
  sweep.keys = varied_keys(groups.firsts);
  const std::vector<std::string> titles = run_titles(groups.firsts);
  for (std::size_t i = 0; i < groups.firsts.size(); ++i) {
    const SweepPoint& point = groups.firsts[i];
    SweptEdge& edge = sweep.points.emplace_back();
    edge.title = titles[i];
    edge.candidate = candidate_of(point);
    edge.points = groups.sizes[i];
    for (const std::string& key : sweep.keys) edge.values.push_back(value_of(point, key));
    find_edge(point, settings, edge, rules, forms);
    if (settings.progress) settings.progress(i + 1);
  }
  sweep.remark = edges_remark({rules.begin(), rules.end()});
  return sweep;
}

}  // namespace pipewright
