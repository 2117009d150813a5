// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/config/merge.h"
#include "core/experiment/identity.h"
#include "core/experiment/reading.h"
#include "core/sweep/point_reader.h"
#include "core/sweep/run_problems.h"
#include "core/sweep/sweep_plan.h"
#include "core/training/assembly.h"
#include "core/training/memory_need.h"

namespace pipewright {
namespace {

/// A group of runs that differ only in their seed.
struct Group {
  std::string title;
  Experiment experiment;
  std::size_t runs = 1;
};

/// Whether two experiments have samples of the same number and shape; a seed changes only their
/// values.
bool same_data(const Experiment& a, const Experiment& b) {
  return *a.resolved.find("dataset") == *b.resolved.find("dataset") &&
         *a.resolved.find("model") == *b.resolved.find("model");
}

std::vector<Group> read_groups(const std::vector<SweepPoint>& points, RunProblems& problems) {
  const std::vector<std::string> titles = run_titles(points);
  std::vector<Group> groups;
  std::vector<SweepPoint> firsts;
  std::map<std::string, std::size_t> by_key, by_digest;  // indices into groups
  for (std::size_t i = 0; i < points.size(); ++i) try {
      const std::optional<std::string> key = key_but_seed(points[i].document);
      if (const auto known = by_key.find(key.value_or("")); key && known != by_key.end()) {
        ++groups[known->second].runs;
        continue;
      }
      Experiment experiment = read_experiment(points[i].document);
      const auto [of, added] =
          by_digest.emplace(digest_without_seed(experiment.resolved), groups.size());
      if (key) by_key.emplace(*key, of->second);
      if (added) {
        groups.push_back({"", std::move(experiment)});
        firsts.push_back(points[i]);
      } else {
        ++groups[of->second].runs;
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Bug) throw;
      problems.add(error, titles[i]);
    }
  const std::vector<std::string> without_seed = run_titles(firsts);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].title = without_seed[i];
  return groups;
}

}  // namespace

std::size_t check_sweep(const Value& document, const LayoutRequest& request,
                        const std::optional<Hardware>& hardware, const ShowPlan& show) {
  const std::vector<SweepPoint> points = expand_sweep(document);
  RunProblems problems;
  const std::vector<Group> groups = read_groups(points, problems);
  problems.throw_if_any(points.size());
  std::shared_ptr<const Dataset> dataset;  // the open one
  const Experiment* opened_by = nullptr;
  Team alone;
  CostSource costs({});
  for (const Group& group : groups) try {
      std::optional<HardwareFit> fit;
      if (hardware) fit = fit_on(group.experiment, *hardware, costs);
      const Experiment e = group.experiment.with(
          fit ? fit->layout : settle_layout(group.experiment, request, alone));
      if (opened_by == nullptr || !same_data(*opened_by, e)) {
        dataset = open_data(e);
        opened_by = &group.experiment;
      }
      const Plan plan = make_plan(e, dataset);
      check_weights(plan);
      fit ? fit->require() : check_memory(plan);
      show(group.title, group.runs, plan, fit);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Bug) throw;
      problems.add(error, group.title);
    }
  problems.throw_if_any(groups.size());
  return points.size();
}

}  // namespace pipewright
