// SPDX-License-Identifier: Apache-2.0
#include "core/tables/table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/tables/best_over.h"
#include "core/tables/default_layout.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/published.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

constexpr const char* kSeed = "train.seed";

/// Assigns indices to names in the order of first use, behind those that are there.
template <class Name>
class Indices {
 public:
  explicit Indices(std::vector<Name>& names) : names_(names) {
    for (std::size_t i = 0; i < names.size(); ++i) known_.emplace(names[i], i);
  }

  std::size_t index(const Name& name) {
    const auto [found, added] = known_.try_emplace(name, names_.size());
    if (added) names_.push_back(name);
    return found->second;
  }

 private:
  std::vector<Name>& names_;
  std::map<Name, std::size_t> known_;
};

void count(const RunRecord& run, const TableSpec& spec, TableCell& cell) {
  if (spec.floor && !cell.learned) cell.learned = 0;
  const bool untrained = is_modelled(spec.metric.name) && !is_time_to(spec.metric.name);
  if (run.state == "done" || untrained) {
    const std::optional<double> value = metric_of(run, spec.metric.name, spec.epoch);
    if (!value) {
      ++cell.without;
      return;
    }
    cell.values.push_back(*value);
    cell.seeds.push_back(key_text(run, kSeed));
    if (spec.floor) *cell.learned += reaches(*value, *spec.floor, spec.metric.name) ? 1 : 0;
  } else if (run.state == "missing") {
    ++cell.missing;
  } else if (run.state == "interrupted") {
    ++cell.interrupted;
  } else if (run.state == "running") {
    ++cell.running;
  } else {
    ++cell.failed;
    if (!spec.failed_as) {
      ++cell.uncounted;
      return;
    }
    cell.values.push_back(*spec.failed_as);
    cell.seeds.push_back(key_text(run, kSeed));
  }
}

/// The run's values of keys.
std::vector<std::string> values_of(const std::vector<TableKey>& keys, const RunRecord& run) {
  std::vector<std::string> values;
  for (const TableKey& key : keys) values.push_back(key_text(run, key.name));
  return values;
}

std::vector<std::string> row_of(const Table& table, const RunRecord& run) {
  std::vector<std::string> row;
  for (const std::string& key : table.row_keys) row.push_back(key_text(run, key));
  return row;
}

std::string column_of(const TableSpec& spec, const RunRecord& run) {
  std::vector<std::string> column;
  for (const TableKey& key : spec.columns) column.push_back(key_title(run, key.name));
  return column.empty() ? spec.metric.name : join(column, ", ");
}

/// Names rows and columns in the order of the keys that the table gives. Without such keys, they
/// come as the runs do.
void name_in_order(Table& table, const TableSpec& spec, const std::vector<RunRecord>& runs) {
  Indices rows(table.row_names);
  Indices columns(table.column_names);
  for (const std::size_t i : slowest_first(spec.rows, runs)) rows.index(row_of(table, runs[i]));
  for (const std::size_t i : slowest_first(spec.columns, runs))
    if (columns.index(column_of(spec, runs[i])) == table.column_values.size())
      table.column_values.push_back(values_of(spec.columns, runs[i]));
}

/// The cell of each run, as row · columns + column. Names rows and columns.
std::vector<std::size_t> assign_cells(Table& table, const TableSpec& spec,
                                      const std::vector<RunRecord>& runs) {
  name_in_order(table, spec, runs);
  Indices rows(table.row_names);
  Indices columns(table.column_names);
  std::vector<std::size_t> cells;
  for (const RunRecord& run : runs)
    cells.push_back(rows.index(row_of(table, run)) * table.column_names.size() +
                    columns.index(column_of(spec, run)));
  return cells;
}

/// Fills the cells with the runs that are shown, all if `shown` is empty.
void fill(Table& table, const TableSpec& spec, const std::vector<RunRecord>& runs,
          std::vector<std::size_t> cells, const std::vector<bool>& shown) {
  const std::size_t columns = table.column_names.size();
  table.cells.assign(table.row_names.size(), std::vector<TableCell>(columns));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!shown.empty() && !shown[i]) {
      cells[i] = table.row_names.size() * columns + i;  // a group of its own
      continue;
    }
    TableCell& cell = table.cells[cells[i] / columns][cells[i] % columns];
    cell.runs.push_back(i);
    count(runs[i], spec, cell);
  }
  for (const std::string& key : varied_keys(runs, spec.columns))
    if (std::ranges::count(table.row_keys, key) == 0 && differs_within(cells, key, runs))
      table.mixed.push_back(key);
}

/// Says which value each cell has, and by what it was chosen.
void tell_choice(Table& table, const TableSpec& spec, const BestChoice& choice) {
  const std::size_t columns = table.column_names.size();
  for (std::size_t g = 0; g < choice.best.size(); ++g) {
    const std::string name = cell_name(table, g / columns, g % columns);
    TableCell& cell = table.cells[g / columns][g % columns];
    if (!choice.best[g]) {
      table.choices.push_back(concat(name,
                                     ": none, because no value has all its runs on held-out "
                                     "samples done"));
      continue;
    }
    const BestValue& best = *choice.best[g];
    cell.chosen = best.value;
    table.choices.push_back(
        concat(name, ": ", best.value, " (",
               std::isfinite(best.mean) ? shown_number(spec.chosen_by, best.mean) : "not reached",
               ", ", counted(best.runs, "run"), ")", best.as_good.empty() ? "" : "; as good: ",
               join(best.as_good, ", "), best.edge.empty() ? "" : "; ", best.edge));
  }
}

/// Which runs are shown; empty: all. Chooses where TableSpec::best_over says so.
std::optional<BestChoice> choose(const Table& table, const TableSpec& spec,
                                 const std::vector<RunRecord>& runs,
                                 const std::vector<std::size_t>& cells, Problems& problems) {
  if (!spec.best_over) return std::nullopt;
  check_key(*spec.best_over, "table.best_over", runs, problems);
  for (const auto* keys : {&spec.rows, &spec.columns})
    if (std::ranges::find(*keys, spec.best_over->name, &TableKey::name) != keys->end())
      problems.add(spec.best_over->place,
                   concat("table.best_over: ", spec.best_over->name,
                          " divides rows or columns, too; leave it out there, or leave best_over "
                          "out"));
  return choose_best(spec, runs, cells, table.row_names.size() * table.column_names.size(),
                     problems);
}

/// A table of one metric in one column.
Table of_metric(const TableKey& metric, const std::vector<std::string>& row_keys,
                const TableSpec& spec, const std::vector<RunRecord>& runs,
                const std::vector<bool>& shown) {
  TableSpec one = spec.with_metric(metric);
  one.columns.clear();
  Table table{.metric = metric.name, .percent = is_share(metric.name), .row_keys = row_keys};
  if (spec.best_over) table.best_over = spec.best_over->name;
  const std::vector<std::size_t> cells = assign_cells(table, one, runs);
  fill(table, one, runs, cells, shown);
  return table;
}

}  // namespace

std::size_t TableCell::not_reached() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(values, [](double value) { return std::isinf(value); }));
}

double TableCell::mean() const {
  return moments_of(values).mean;
}

double TableCell::std() const {
  return moments_of(values).std();
}

std::string cell_name(const Table& table, std::size_t row, std::size_t column) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < table.row_keys.size(); ++k)
    parts.push_back(named_value(table.row_keys[k], table.row_names[row][k]));
  if (table.column_names.size() > 1) parts.push_back(table.column_names[column]);
  return join(parts, ", ");
}

std::vector<RunRecord> runs_beside(const Table& table, const std::vector<TableKey>& keys,
                                   const std::vector<RunRecord>& runs) {
  if (table.best_over.empty()) return runs;
  std::vector<bool> shown(runs.size());
  if (std::ranges::find(keys, table.best_over, &TableKey::name) != keys.end()) {
    const bool held_out = std::ranges::all_of(runs, has_held_out);
    for (std::size_t i = 0; i < runs.size(); ++i) shown[i] = has_held_out(runs[i]) == held_out;
  } else {
    for (const std::vector<TableCell>& row : table.cells)
      for (const TableCell& cell : row)
        for (const std::size_t run : cell.runs) shown[run] = true;
  }
  std::vector<RunRecord> some;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (shown[i]) some.push_back(runs[i]);
  return some;
}

Table make_table(const TableSpec& given, const std::vector<RunRecord>& records) {
  const TableSpec spec = laid_out(given, records);
  std::vector<std::string> metrics{spec.metric.name};
  for (const TableKey& metric : spec.beside) metrics.push_back(metric.name);
  const std::vector<RunRecord> derived = derived_added(records, metrics, spec.loss);
  const std::vector<RunRecord>& runs = derived.empty() ? records : derived;
  Problems problems;
  for (const TableKey& key : given.rows) check_key(key, "table.rows", runs, problems);
  for (const TableKey& key : given.columns) check_key(key, "table.columns", runs, problems);
  const TablePublished* const published = spec.published_of_metric();
  if (published != nullptr)
    for (const auto& [column, key] : published->match)
      check_key(key, "table.published.match", runs, problems);
  check_metric(spec.metric, "table.metric", runs, problems);
  Table table;
  table.metric = spec.metric.name;
  table.percent = is_share(spec.metric.name);
  for (const TableKey& key : spec.rows) table.row_keys.push_back(key.name);
  for (const TableKey& key : spec.columns) table.column_keys.push_back(key.name);
  const std::vector<std::size_t> cells = assign_cells(table, spec, runs);
  const std::optional<BestChoice> choice = choose(table, spec, runs, cells, problems);
  const std::vector<bool> shown = choice ? choice->shown : std::vector<bool>();
  fill(table, spec, runs, cells, shown);
  if (choice) {
    table.best_over = spec.best_over->name;
    tell_choice(table, spec, *choice);
  }
  if (published != nullptr) add_published(table, *published, runs, problems);
  for (const TableKey& metric : spec.beside) {
    check_metric(metric, "table.beside", runs, problems);
    table.beside.push_back(of_metric(metric, table.row_keys, spec, runs, shown));
  }
  problems.throw_if_any();
  const auto all = shown.empty() ? std::ssize(runs) : std::ranges::count(shown, true);
  table.caption =
      table_caption(table, spec, static_cast<std::size_t>(all), choice ? &*choice : nullptr);
  return table;
}

}  // namespace pipewright
