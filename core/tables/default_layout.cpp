// SPDX-License-Identifier: Apache-2.0
#include "core/tables/default_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

constexpr const char* kLabel = "label";
constexpr const char* kSeedKey = "train.seed";
constexpr const char* kScheme = "scheme.name";
constexpr const char* kStages = "pipeline.stages";
constexpr const char* kReplicas = "pipeline.replicas";
constexpr const char* kWorkers = "workers";

/// The runs in groups that are divided key by key.
class Groups {
 public:
  explicit Groups(const std::vector<RunRecord>& runs) : runs_(runs), groups_(runs.size(), 0) {}

  /// Whether runs of one group differ in the key.
  bool differ_in(const std::string& key) const { return differs_within(groups_, key, runs_); }

  void divide(const std::string& key) {
    std::map<std::pair<std::size_t, std::string>, std::size_t> known;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      groups_[i] =
          known.try_emplace({groups_[i], key_text(runs_[i], key)}, known.size()).first->second;
  }

 private:
  const std::vector<RunRecord>& runs_;
  std::vector<std::size_t> groups_;
};

bool has(const std::vector<TableKey>& keys, const std::string& name) {
  return std::ranges::find(keys, name, &TableKey::name) != keys.end();
}

/// The keys of columns: the number of workers where that alone tells stages and replicas apart.
std::string across_of(const Groups& groups, const std::vector<TableKey>& taken) {
  if (has(taken, kStages) || has(taken, kWorkers)) return {};
  if (groups.differ_in(kReplicas) && groups.differ_in(kWorkers)) {
    Groups by_workers = groups;
    by_workers.divide(kWorkers);
    if (!by_workers.differ_in(kStages) && !by_workers.differ_in(kReplicas)) return kWorkers;
  }
  return groups.differ_in(kStages) ? kStages : "";
}

std::vector<TableKey> keys_of(const std::vector<std::string>& names) {
  std::vector<TableKey> keys;
  for (const std::string& name : names) keys.push_back({name, {}});
  return keys;
}

/// Whether each run has one epoch, which would be a dot, and some run has evaluations within it.
bool only_evaluated_within_an_epoch(const std::vector<RunRecord>& runs, const std::string& metric) {
  const auto one = [](const RunRecord& run) { return run.epochs.size() <= 1; };
  const auto several = [&](const RunRecord& run) {
    return evaluations_of(run, "minibatches", metric).size() > 1;
  };
  return std::ranges::all_of(runs, one) && std::ranges::any_of(runs, several);
}

/// Whether labels tell runs apart that differ in their seeds, as those do that a sweep makes
/// itself.
bool labels_have_seeds(const std::vector<RunRecord>& runs) {
  std::set<std::string> labels, seeds;
  for (const RunRecord& run : runs) {
    labels.insert(run.label);
    seeds.insert(key_text(run, kSeedKey));
  }
  return seeds.size() > 1 && labels.size() == runs.size();
}

}  // namespace

std::vector<std::string> varied_keys(const std::vector<RunRecord>& runs,
                                     const std::vector<TableKey>& ignored) {
  std::set<std::string> seen{kLabel, kSeedKey};
  for (const TableKey& key : ignored) seen.insert(key.name);
  std::vector<std::string> keys;
  for (const RunRecord& run : runs)
    for (const auto& [key, value] : run.varied.fields)
      if (seen.insert(key).second) keys.push_back(key);
  return keys;
}

bool differs_within(const std::vector<std::size_t>& groups, const std::string& key,
                    const std::vector<RunRecord>& runs) {
  std::map<std::size_t, std::string> first;  // value of each group's first run
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string text = key_text(runs[i], key);
    const auto [known, added] = first.try_emplace(groups[i], text);
    if (!added && known->second != text) return true;
  }
  return false;
}

DefaultLayout default_layout(const std::vector<RunRecord>& runs, bool labelled,
                             const std::vector<TableKey>& taken) {
  DefaultLayout layout;
  Groups groups(runs);
  for (const TableKey& key : taken) groups.divide(key.name);
  const auto take = [&](std::vector<std::string>& keys, const std::string& key) {
    if (!groups.differ_in(key)) return;
    keys.push_back(key);
    groups.divide(key);
  };
  const std::vector<std::string> varied = varied_keys(runs, taken);
  if (labelled && !has(taken, kLabel)) {
    layout.lines.emplace_back(kLabel);
    groups.divide(kLabel);
  } else {
    for (const std::string& key : varied)
      if (key.starts_with("scheme.")) take(layout.lines, key);
  }
  layout.across = across_of(groups, taken);
  if (!layout.across.empty()) groups.divide(layout.across);
  for (const std::string& key : varied) take(layout.further, key);
  if (!layout.lines.empty()) return layout;
  if (layout.across.empty() && !layout.further.empty()) {
    layout.lines = {layout.further.front()};
    layout.further.erase(layout.further.begin());
  } else if (!layout.across.empty() && !has(taken, kScheme)) {
    layout.lines.emplace_back(kScheme);
  }
  return layout;
}

PlotSpec laid_out(PlotSpec spec, const std::vector<RunRecord>& runs) {
  if (spec.kind == PlotKind::Map) return spec;
  const bool needs_epochs = !spec.hardware.empty() || spec.published;
  const bool free = spec.x_is_free && !needs_epochs;
  if (free && only_evaluated_within_an_epoch(runs, spec.metric.name)) spec.x.name = "minibatch";
  if (!spec.lines.empty()) return spec;
  std::vector<TableKey> taken = spec.pictures;
  if (spec.over_key()) taken.push_back(spec.x);
  const DefaultLayout layout = default_layout(runs, spec.labelled, taken);
  spec.lines = keys_of(layout.lines);
  if (spec.lines.empty()) spec.lines.push_back({labels_have_seeds(runs) ? kScheme : kLabel, {}});
  std::vector<std::string> rest = layout.further;
  if (!layout.across.empty()) {
    if (free)
      spec.x.name = layout.across;
    else
      rest.insert(rest.begin(), layout.across);
  }
  std::vector<TableKey>& place = spec.pictures.empty() ? spec.pictures : spec.lines;
  for (const TableKey& key : keys_of(rest)) place.push_back(key);
  return spec;
}

TableSpec laid_out(TableSpec spec, const std::vector<RunRecord>& runs) {
  if (!spec.rows.empty()) return spec;
  std::vector<TableKey> taken = spec.columns;
  if (spec.best_over) {
    taken.push_back(*spec.best_over);
    taken.push_back({"loader.validation", {}});
  }
  const DefaultLayout layout = default_layout(runs, spec.labelled, taken);
  const bool free = spec.columns.empty() && spec.beside.empty();
  spec.rows = keys_of(layout.further);
  for (const TableKey& key : keys_of(layout.lines)) spec.rows.push_back(key);
  if (!layout.across.empty()) (free ? spec.columns : spec.rows).push_back({layout.across, {}});
  if (spec.rows.empty()) spec.rows.push_back({"name", {}});
  return spec;
}

}  // namespace pipewright
