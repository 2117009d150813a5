// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/named_keys.h"

#include <algorithm>

#include "core/base/registry.h"
#include "core/base/wording.h"
#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/nn/metric.h"
#include "core/probes/probe.h"
#include "core/records/run_folder.h"
#include "core/tables/claims.h"
#include "core/tables/curves.h"
#include "core/tables/heat_map.h"
#include "core/tables/plot_spec.h"
#include "core/tables/run_keys.h"
#include "core/tables/table.h"
#include "core/tables/table_spec.h"
#include "core/tables/verdicts.h"

namespace pipewright {
namespace {

/// Adds what the probes of a configuration write.
void add_quantities(const Value& config, std::vector<std::string>& columns) {
  const Value* const probes = config.find("probes");
  if (probes == nullptr) return;
  for (const Value& each : probes->items) {
    const Value* const name = each.find("name");
    const auto* const entry =
        name == nullptr ? nullptr : Registry<Probe>::instance().find(name->text);
    if (entry == nullptr) continue;
    Problems unheard;
    Options options(&each, "probes", unheard);
    for (const Probe::Quantity& quantities : entry->make(options)->quantities())
      for (const std::string& quantity : split(quantities.name, ','))  // of one meaning
        columns.push_back(concat("probe.", name->text, ".", trimmed(quantity)));
  }
}

std::vector<std::string> all_metrics() {
  std::vector<std::string> metrics = Registry<Metric>::instance().names();
  metrics.emplace_back(kBleu);
  return metrics;
}

/// The metrics that the configuration, its data set and its loss ask for; all of them if it cannot
/// be read here, for example because a plugin is missing.
std::vector<std::string> metrics_of(const RunConfig& config) {
  if (!config.known()) return all_metrics();
  Problems problems;
  Options root(&config.of_any_seed(), "", problems);
  Experiment experiment;
  BalanceOption balance;
  try {
    read_sections(root, experiment, balance);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    return all_metrics();
  }
  return problems.errors().empty() ? experiment.metric_names : all_metrics();
}

/// Gives a run the columns that it may have once it has trained, and those of the metrics that it
/// does not ask for.
void add_columns_to_come(RunRecord& run) {
  run.columns = epoch_columns();
  const std::vector<std::string> asked = metrics_of(run.config);
  for (const std::string& metric : all_metrics()) {
    const std::string column = "test_" + metric;
    const bool comes = std::ranges::count(asked, metric) > 0;
    if (std::ranges::count(run.columns, column) == 0)
      (comes ? run.columns : run.unasked).push_back(column);
  }
  for (const char* const traffic : kTrafficColumns) run.columns.emplace_back(traffic);
  if (run.config.known()) add_quantities(run.config.of_any_seed(), run.columns);
}

}  // namespace

void check_all(const std::vector<std::function<void()>>& parts) {
  std::vector<std::string> wrong;
  for (const auto& part : parts) try {
      part();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Experiment) throw;
      for (const std::string& line : split(error.what(), '\n'))
        if (std::ranges::count(wrong, line) == 0) wrong.push_back(line);
    }
  if (!wrong.empty()) throw Error(ErrorKind::Experiment, join(wrong, "\n"));
}

void check_named_keys(const Value& document, const std::vector<RunRecord>& runs) {
  Problems problems;
  const auto check = [&](const std::vector<TableKey>& keys, const char* what) {
    for (const TableKey& key : keys) check_key(key, what, runs, problems);
  };
  const auto check_match = [&](const TablePublished& published, const char* what) {
    for (const auto& [column, key] : published.match) check_key(key, what, runs, problems);
  };
  const TableSpec table = read_table_spec(document);
  check(table.rows, "table.rows");
  check(table.columns, "table.columns");
  if (table.published) check_match(*table.published, "table.published.match");
  check_plot_keys(read_plot_spec(document), runs, problems);
  check_claims(read_claims(document), runs, problems);
  problems.throw_if_any();
}

std::vector<RunRecord> with_columns_to_come(std::vector<RunRecord> runs) {
  const RunRecord* last = nullptr;
  for (RunRecord& run : runs) {
    if (!run.columns.empty()) continue;
    // Runs that differ in their seed only share a configuration.
    if (last != nullptr && last->config.known() && run.config.known() &&
        &last->config.of_any_seed() == &run.config.of_any_seed()) {
      run.columns = last->columns;
      run.unasked = last->unasked;
    } else {
      add_columns_to_come(run);
    }
    last = &run;
  }
  return runs;
}

void check_tables(const Value& document, const std::vector<RunRecord>& records) {
  const std::vector<RunRecord> runs = with_columns_to_come(records);
  const auto given = [&](const char* section) { return document.find(section) != nullptr; };
  check_all({[&] {
               if (given("table")) make_table(read_table_spec(document), runs);
             },
             [&] {
               if (!given("plot")) return;
               const PlotSpec plot = read_plot_spec(document);
               if (plot.kind == PlotKind::Map)
                 make_maps(plot, runs);
               else
                 make_pictures(plot, runs);
             },
             [&] { judge(read_claims(document), read_table_spec(document), runs); }});
}

std::string few_runs_remark(const Value& document, const std::vector<RunRecord>& runs) {
  constexpr std::ptrdiff_t kFewest = 3;
  std::vector<std::string> few;
  for (const Claim& claim : read_claims(document))
    for (const ClaimGroup* group : claim.groups()) {
      const auto count =
          std::ranges::count_if(runs, [&](const RunRecord& run) { return group->has(run); });
      const std::string text = concat(group->name(), " has ", count);
      if (count < kFewest && std::ranges::count(few, text) == 0) few.push_back(text);
    }
  if (few.empty()) return {};
  constexpr std::size_t kMostNamed = 3;
  const std::size_t more = few.size() - std::min(few.size(), kMostNamed);
  few.resize(few.size() - more);
  return concat("claims need at least 3 runs a group, such as 3 seeds, to be shown; ",
                join(few, ", "), more > 0 ? concat(", and so on for ", more, " more") : "");
}

}  // namespace pipewright
