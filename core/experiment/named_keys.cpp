// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/named_keys.h"

#include <algorithm>

#include "core/base/registry.h"
#include "core/base/wording.h"
#include "core/experiment/experiment.h"
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

/// The metrics that a run of this configuration may have once it has trained. Every registered
/// metric is among them, because data sets add some by themselves.
std::vector<std::string> columns_to_come(const RunConfig& config) {
  std::vector<std::string> columns = epoch_columns();
  std::vector<std::string> metrics = Registry<Metric>::instance().names();
  metrics.emplace_back(kBleu);
  for (const std::string& metric : metrics)
    if (const std::string column = "test_" + metric; std::ranges::count(columns, column) == 0)
      columns.push_back(column);
  for (const char* const traffic : kTrafficColumns) columns.emplace_back(traffic);
  if (config.known()) add_quantities(config.of_any_seed(), columns);
  return columns;
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
  const RunConfig* last = nullptr;
  std::vector<std::string> columns;
  for (RunRecord& run : runs) {
    if (!run.columns.empty()) continue;
    // Runs that differ in their seed only share a configuration.
    const bool same = last != nullptr && last->known() && run.config.known() &&
                      &last->of_any_seed() == &run.config.of_any_seed();
    if (!same) columns = columns_to_come(run.config);
    last = &run.config;
    run.columns = columns;
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
