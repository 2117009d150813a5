#include "core/experiment/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/experiment/published.h"
#include "core/experiment/run_keys.h"

namespace pipewright {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kSeed = "train.seed";

/// What the sweep varies between runs of one label (or at all, without labels), except seeds.
std::vector<TableKey> default_rows(const TableSpec& spec, const std::vector<RunRecord>& runs) {
  std::vector<TableKey> rows;
  if (spec.labelled) rows.push_back({"label", {}});
  const auto taken = [&](const std::string& key) {
    const auto named = [&](const TableKey& known) { return known.name == key; };
    return key == "label" || key == kSeed || std::ranges::any_of(rows, named) ||
           std::ranges::any_of(spec.columns, named);
  };
  const auto splits_label = [&](const RunRecord& run, const std::string& key) {
    return std::ranges::any_of(runs, [&](const RunRecord& other) {
      return other.label == run.label && key_text(other, key) != key_text(run, key);
    });
  };
  for (const RunRecord& run : runs)
    for (const auto& [key, value] : run.varied.fields)
      if (!taken(key) && (!spec.labelled || splits_label(run, key))) rows.push_back({key, {}});
  const auto is_label = [](const TableKey& key) { return key.name == "label"; };
  if (std::ranges::any_of(spec.columns, is_label)) std::erase_if(rows, is_label);
  if (rows.empty()) rows.push_back({"name", {}});
  return rows;
}

template <class Name>
std::size_t index_of(std::vector<Name>& names, const Name& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

void count(const RunRecord& run, const TableSpec& spec, TableCell& cell) {
  if (run.state == "done" || is_modelled(spec.metric.name)) {
    const std::optional<double> value = metric_of(run, spec.metric.name, spec.epoch);
    if (value)
      cell.values.push_back(*value);
    else
      ++cell.without;
  } else if (run.state == "missing") {
    ++cell.missing;
  } else if (run.state == "interrupted") {
    ++cell.interrupted;
  } else if (run.state == "running") {
    ++cell.running;
  } else {
    ++cell.failed;
  }
}

void fill(Table& table, const TableSpec& spec, const std::vector<RunRecord>& runs) {
  std::vector<std::pair<std::size_t, std::size_t>> where;
  for (const RunRecord& run : runs) {
    std::vector<std::string> row, column;
    for (const std::string& key : table.row_keys) row.push_back(key_text(run, key));
    for (const TableKey& key : spec.columns) column.push_back(key_title(run, key.name));
    const std::string title = column.empty() ? spec.metric.name : join(column, ", ");
    where.emplace_back(index_of(table.row_names, row), index_of(table.column_names, title));
  }
  table.cells.assign(table.row_names.size(), std::vector<TableCell>(table.column_names.size()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    TableCell& cell = table.cells[where[i].first][where[i].second];
    cell.runs.push_back(i);
    count(runs[i], spec, cell);
  }
}

/// One column.
Table of_metric(const TableKey& metric, const std::vector<std::string>& row_keys,
                const TableSpec& spec, const std::vector<RunRecord>& runs) {
  TableSpec one = spec;
  one.metric = metric;
  one.columns.clear();
  Table table{.metric = metric.name, .percent = is_share(metric.name), .row_keys = row_keys};
  fill(table, one, runs);
  return table;
}

/// Records, and returns false for, columns that the file of published numbers does not have.
bool check_columns(const TablePublished& wanted, const PublishedNumbers& numbers,
                   Problems& problems) {
  bool fine = numbers.has(wanted.value.name, wanted.value.place, "table.published", problems);
  for (const auto& [column, key] : wanted.match)
    fine = numbers.has(column, key.place, "table.published", problems) && fine;
  if (wanted.std)
    fine = numbers.has(wanted.std->name, wanted.std->place, "table.published", problems) && fine;
  return fine;
}

PublishedNumber number_of(std::string text, bool error) {
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

/// Of the labels of the cell's runs.
std::vector<std::size_t> notes_of(const TableCell& cell, const TablePublished& wanted,
                                  const std::vector<RunRecord>& runs, Table& table) {
  std::vector<std::size_t> notes;
  for (const auto& [label, text] : wanted.differs)
    if (label == "all" ||
        std::ranges::any_of(cell.runs, [&](std::size_t run) { return runs[run].label == label; }))
      notes.push_back(index_of(table.notes, text));
  return notes;
}

/// A cell shows the published number of its runs where they agree on one.
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

std::string caption_of(const Table& table, const TableSpec& spec,
                       const std::vector<RunRecord>& runs) {
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
  const std::string when = is_modelled(table.metric) ? concat(" on ", spec.hardware.stem().string())
                                                     : concat(" at the ", spec.epoch, " epoch");
  std::string text = concat(table.metric, table.percent ? " in percent" : "", when,
                            ", mean ± sample standard deviation (number of runs); ",
                            all.values.size(), " of ", runs.size(), " runs stand behind it");
  const auto add = [&](int number, const char* what) {
    if (number > 0) text += concat(", ", number, " ", what);
  };
  add(all.failed, "failed");
  add(all.missing, "missing");
  add(all.interrupted, "interrupted");
  add(all.running, "running");
  if (all.without > 0) text += concat(", ", all.without, " without ", table.metric);
  if (spec.published)
    text += concat("; published: ", spec.published->file.filename().string(),
                   ", and ours minus theirs");
  return text + ".";
}

}  // namespace

double TableCell::mean() const {
  if (values.empty()) return kNoNumber;
  return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

double TableCell::std() const {
  if (values.size() < 2) return kNoNumber;
  double squares = 0;
  for (const double value : values) squares += (value - mean()) * (value - mean());
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
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

Table make_table(const TableSpec& spec, const std::vector<RunRecord>& runs) {
  Problems problems;
  for (const TableKey& key : spec.rows) check_key(key, "table.rows", runs, problems);
  for (const TableKey& key : spec.columns) check_key(key, "table.columns", runs, problems);
  if (spec.published)
    for (const auto& [column, key] : spec.published->match)
      check_key(key, "table.published.match", runs, problems);
  check_metric(spec.metric, "table.metric", runs, problems);
  Table table;
  table.metric = spec.metric.name;
  table.percent = is_share(spec.metric.name);
  for (const TableKey& key : spec.rows.empty() ? default_rows(spec, runs) : spec.rows)
    table.row_keys.push_back(key.name);
  fill(table, spec, runs);
  if (spec.published) add_published(table, *spec.published, runs, problems);
  for (const TableKey& metric : spec.beside) {
    check_metric(metric, "table.beside", runs, problems);
    table.beside.push_back(of_metric(metric, table.row_keys, spec, runs));
  }
  problems.throw_if_any();
  table.caption = caption_of(table, spec, runs);
  return table;
}

}  // namespace pipewright
