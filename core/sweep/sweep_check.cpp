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

/// The data set of some groups, open if one of them has been planned.
struct SharedData {
  Value section;
  DatasetRequest request;
  std::shared_ptr<const Dataset> dataset;
};

/// A group of runs that differ only in their seed.
struct Group {
  std::string title;
  Experiment experiment;
  std::size_t runs = 1;
  std::shared_ptr<SharedData> data;  ///< null once it is planned, so that the last one closes it
};

std::vector<Group> read_groups(const std::vector<SweepPoint>& points, RunProblems& problems) {
  const std::vector<std::string> titles = run_titles(points);
  std::vector<Group> groups;
  std::vector<SweepPoint> firsts;
  std::map<std::string, std::size_t> by_key, by_digest;  // indices into groups
  KnownForms forms;
  for (std::size_t i = 0; i < points.size(); ++i) try {
      const std::optional<std::string> key = key_but_seed(points[i].document);
      if (const auto known = by_key.find(key.value_or("")); key && known != by_key.end()) {
        ++groups[known->second].runs;
        continue;
      }
      Experiment experiment = read_experiment(points[i].document, {}, forms);
      const auto [of, added] =
          by_digest.emplace(digest_without_seed(experiment.resolved), groups.size());
      if (key) by_key.emplace(*key, of->second);
      if (added) {
        groups.push_back({"", std::move(experiment), 1, nullptr});
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

/// Lets groups share a data set whose samples have the same number and shape.
void share_data(std::vector<Group>& groups) {
  std::vector<std::shared_ptr<SharedData>> all;
  for (Group& group : groups) {
    const Experiment& e = group.experiment;
    SharedData own{*e.resolved.find("dataset"), data_request(e), nullptr};
    own.request.seed = 0;  // it changes only values
    const auto known = std::ranges::find_if(all, [&](const auto& data) {
      return data->section == own.section && data->request == own.request;
    });
    group.data = known != all.end()
                     ? *known
                     : all.emplace_back(std::make_shared<SharedData>(std::move(own)));
  }
}

}  // namespace

std::size_t check_sweep(const Value& document, const LayoutRequest& request,
                        const std::optional<Hardware>& hardware, const ShowPlan& show) {
  const std::vector<SweepPoint> points = expand_sweep_alone(document);
  RunProblems problems;
  std::vector<Group> groups = read_groups(points, problems);
  problems.throw_if_any(points.size());
  share_data(groups);
  Team alone;
  CostSource costs({});
  for (Group& group : groups) try {
      const auto data = std::move(group.data);
      std::optional<HardwareFit> fit;
      if (hardware) fit = fit_on(group.experiment, *hardware, costs);
      const Experiment e = group.experiment.with(
          fit ? fit->layout : settle_layout(group.experiment, request, alone));
      if (!data->dataset) data->dataset = open_data(e);
      const Plan plan = make_plan(e, data->dataset);
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
