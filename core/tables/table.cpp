// SPDX-License-Identifier: Apache-2.0
#include "core/tables/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/tables/best_over.h"
#include "core/tables/default_layout.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/published.h"
#include "core/tables/run_keys.h"

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

  std::size_t of(const Name& name) {
    const auto [found, added] = known_.try_emplace(name, names_.size());
    if (added) names_.push_back(name);
    return found->second;
  }

 private:
  std::vector<Name>& names_;
  std::map<Name, std::size_t> known_;
};

template <class Name>
std::size_t index_of(std::vector<Name>& names, const Name& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

void count(const RunRecord& run, const TableSpec& spec, TableCell& cell) {
  if (spec.floor && !cell.learned) cell.learned = 0;
  if (run.state == "done" || is_modelled(spec.metric.name)) {
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
    if (!spec.failed_as) return;
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
  for (const std::size_t i : slowest_first(spec.rows, runs)) rows.of(row_of(table, runs[i]));
  for (const std::size_t i : slowest_first(spec.columns, runs))
    if (columns.of(column_of(spec, runs[i])) == table.column_values.size())
      table.column_values.push_back(values_of(spec.columns, runs[i]));
}

/// The cell of each run, as row · columns + column. Names rows and columns.
std::vector<std::size_t> place(Table& table, const TableSpec& spec,
                               const std::vector<RunRecord>& runs) {
  name_in_order(table, spec, runs);
  Indices rows(table.row_names);
  Indices columns(table.column_names);
  std::vector<std::size_t> cells;
  for (const RunRecord& run : runs)
    cells.push_back(rows.of(row_of(table, run)) * table.column_names.size() +
                    columns.of(column_of(spec, run)));
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
  const bool percent = is_share(spec.chosen_by);
  const auto shown = [&](double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), percent ? "%.2f" : "%.4g",
                  percent ? 100 * value : value);
    return std::string(text.data());
  };
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
        concat(name, ": ", best.value, " (", shown(best.mean), ", ", counted(best.runs, "run"), ")",
               best.as_good.empty() ? "" : "; as good: ", join(best.as_good, ", ")));
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

/// Keys in words: "optimizer.lr and pipeline.stages".
std::string listed(const std::vector<std::string>& keys) {
  if (keys.size() == 1) return keys.front();
  return concat(join(std::span(keys).first(keys.size() - 1), ", "), " and ", keys.back());
}

/// A table of one metric in one column.
Table of_metric(const TableKey& metric, const std::vector<std::string>& row_keys,
                const TableSpec& spec, const std::vector<RunRecord>& runs,
                const std::vector<bool>& shown) {
  TableSpec one = spec;
  one.metric = metric;
  one.columns.clear();
  Table table{.metric = metric.name, .percent = is_share(metric.name), .row_keys = row_keys};
  if (spec.best_over) table.best_over = spec.best_over->name;
  const std::vector<std::size_t> cells = place(table, one, runs);
  fill(table, one, runs, cells, shown);
  return table;
}

/// Whether the file of published numbers has all columns. Records a problem for each missing one.
bool check_columns(const TablePublished& wanted, const PublishedNumbers& numbers,
                   Problems& problems) {
  bool fine = numbers.has(wanted.value.name, wanted.value.place, "table.published", problems);
  for (const auto& [column, key] : wanted.match)
    fine = numbers.has(column, key.place, "table.published", problems) && fine;
  if (wanted.std)
    fine = numbers.has(wanted.std->name, wanted.std->place, "table.published", problems) && fine;
  return fine;
}

PublishedNumber number_of(const std::string& text, bool error) {
  PublishedNumber number{.text = text, .value = published_number(text)};
  if (!error || !number.value) return number;
  const std::size_t dot = text.find('.');
  const auto decimals = dot == std::string::npos ? 0 : static_cast<int>(text.size() - dot - 1);
  number.value = 100 - *number.value;
  std::array<char, 64> shown{};
  std::snprintf(shown.data(), shown.size(), "%.*f", decimals, *number.value);
  number.text = shown.data();
  return number;
}

/// Indices of the notes for the labels of the cell's runs. Adds new notes to the table.
std::vector<std::size_t> notes_of(const TableCell& cell, const TablePublished& wanted,
                                  const std::vector<RunRecord>& runs, Table& table) {
  std::vector<std::size_t> notes;
  for (const auto& difference : wanted.differs) {
    const std::string& label = difference.first;
    if (label == "all" ||
        std::ranges::any_of(cell.runs, [&](std::size_t run) { return runs[run].label == label; }))
      notes.push_back(index_of(table.notes, difference.second));
  }
  return notes;
}

/// Adds to each cell the published number of its runs if they agree on one.
void add_published(Table& table, const TablePublished& wanted, const std::vector<RunRecord>& runs,
                   Problems& problems) {
  const PublishedNumbers numbers = read_published(wanted.file);
  if (!check_columns(wanted, numbers, problems)) return;
  for (std::vector<TableCell>& row : table.cells) {
    for (TableCell& cell : row) {
      std::vector<std::string> found, deviations;
      for (const std::size_t run : cell.runs) {
        std::vector<std::pair<std::string, std::string>> texts;
        for (const auto& [column, key] : wanted.match)
          texts.emplace_back(column, key_text(runs[run], key.name));
        try {
          const auto text = numbers.find(texts, wanted.value.name);
          if (!text) continue;
          index_of(found, *text);
          if (wanted.std) index_of(deviations, numbers.find(texts, wanted.std->name).value_or(""));
        } catch (const Error& error) {
          problems.add(wanted.place, concat("table.published: ", error.message()));
        }
      }
      if (found.size() != 1) continue;
      cell.published = number_of(found.front(), wanted.error);
      if (deviations.size() == 1) cell.published->std = deviations.front();
      cell.published->notes = notes_of(cell, wanted, runs, table);
    }
  }
}

std::string choice_caption(const TableSpec& spec, const BestChoice& choice) {
  return concat(" Each cell shows the runs with its best value of ", spec.best_over->name,
                ": the value with the best mean ", spec.chosen_by, " on held-out samples.",
                choice.shows_held_out
                    ? " The results shown are those on the same samples, and so are too good; to "
                      "show test results, sweep loader.validation over 0, too."
                    : "");
}

/// The caption: what a cell's numbers are, and from how many of its `runs`
/// runs they come.
std::string caption_of(const Table& table, const TableSpec& spec, std::size_t runs) {
  TableCell all;
  for (const std::vector<TableCell>& row : table.cells)
    for (const TableCell& cell : row) {
      all.values.insert(all.values.end(), cell.values.begin(), cell.values.end());
      all.failed += cell.failed;
      all.missing += cell.missing;
      all.interrupted += cell.interrupted;
      all.running += cell.running;
      all.without += cell.without;
    }
  const bool judged = better_values(table.metric) != Better::NotJudged;
  const std::string when = is_modelled(table.metric)
                               ? concat(" on ", spec.hardware.stem().string())
                               : concat(" at the ", judged ? spec.epoch : "last", " epoch");
  const std::string some =
      all.values.size() == runs ? std::string() : concat(all.values.size(), " of ");
  std::string text = concat(table.metric, table.percent ? " in percent" : "", when,
                            ", mean ± sample standard deviation (number of runs); ", "from ", some,
                            counted(runs, "run"));
  const auto add = [&](int number, const char* what) {
    if (number > 0) text += concat(", ", number, " ", what);
  };
  add(all.failed, spec.failed_as ? "failed and counted" : "failed");
  add(all.missing, "missing");
  add(all.interrupted, "interrupted");
  add(all.running, "running");
  if (all.without > 0) text += concat(", ", all.without, " without ", table.metric);
  if (spec.published)
    text += concat(". Behind our number stand the published one (",
                   spec.published->file.filename().string(), ") and ours minus the published one");
  return text + ".";
}

}  // namespace

double TableCell::mean() const {
  return moments_of(values).mean;
}

double TableCell::std() const {
  return moments_of(values).std();
}

std::string cell_name(const Table& table, std::size_t row, std::size_t column) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < table.row_keys.size(); ++k) {
    const std::string& text = table.row_names[row][k];
    const bool number = text.find_first_not_of("0123456789.-+e") == std::string::npos;
    parts.push_back(number ? concat(split(table.row_keys[k], '.').back(), " ", text) : text);
  }
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

std::string mixing_note(const Table& table) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& of, const std::vector<std::string>& keys) {
    if (!keys.empty())
      parts.push_back(concat(parts.empty() ? "Cells" : "cells", of, " mix ", listed(keys)));
  };
  add("", table.mixed);
  for (const Table& other : table.beside)
    if (other.mixed != table.mixed) add(" of " + other.metric, other.mixed);
  if (parts.empty()) return {};
  return concat(join(parts, ", "), ": ± is over all runs of a cell, not over seeds alone; ",
                "table.rows or table.columns can tell them apart.");
}

Table make_table(const TableSpec& given, const std::vector<RunRecord>& records) {
  const TableSpec spec = laid_out(given, records);
  std::vector<std::string> metrics{spec.metric.name};
  for (const TableKey& metric : spec.beside) metrics.push_back(metric.name);
  const std::vector<RunRecord> with_probes = probe_columns_added(records, metrics);
  const std::vector<RunRecord>& runs = with_probes.empty() ? records : with_probes;
  Problems problems;
  for (const TableKey& key : given.rows) check_key(key, "table.rows", runs, problems);
  for (const TableKey& key : given.columns) check_key(key, "table.columns", runs, problems);
  if (spec.published)
    for (const auto& [column, key] : spec.published->match)
      check_key(key, "table.published.match", runs, problems);
  check_metric(spec.metric, "table.metric", runs, problems);
  Table table;
  table.metric = spec.metric.name;
  table.percent = is_share(spec.metric.name);
  for (const TableKey& key : spec.rows) table.row_keys.push_back(key.name);
  for (const TableKey& key : spec.columns) table.column_keys.push_back(key.name);
  const std::vector<std::size_t> cells = place(table, spec, runs);
  const std::optional<BestChoice> choice = choose(table, spec, runs, cells, problems);
  const std::vector<bool> shown = choice ? choice->shown : std::vector<bool>();
  fill(table, spec, runs, cells, shown);
  if (choice) {
    table.best_over = spec.best_over->name;
    tell_choice(table, spec, *choice);
  }
  if (spec.published) add_published(table, *spec.published, runs, problems);
  for (const TableKey& metric : spec.beside) {
    check_metric(metric, "table.beside", runs, problems);
    table.beside.push_back(of_metric(metric, table.row_keys, spec, runs, shown));
  }
  problems.throw_if_any();
  const auto all = shown.empty() ? std::ssize(runs) : std::ranges::count(shown, true);
  table.caption = caption_of(table, spec, static_cast<std::size_t>(all));
  if (choice) table.caption += choice_caption(spec, *choice);
  return table;
}

}  // namespace pipewright
