// SPDX-License-Identifier: Apache-2.0
#include "core/tables/against.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/text.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

using Names = std::vector<std::vector<std::string>>;  ///< of each row or column, its keys' values

/// The cells to compare with: they have this value of a key.
struct Reference {
  bool of_columns = false;  ///< the key divides the columns
  std::size_t key = 0;      ///< its index
  std::string key_name;
  std::string value;

  std::string text() const { return concat(key_name, "=", value); }
};

/// Every value of every key of rows and columns, each once.
std::vector<Reference> references_in(const Table& table) {
  std::vector<Reference> all;
  const auto add = [&](const std::vector<std::string>& keys, const Names& names, bool columns) {
    for (std::size_t key = 0; key < keys.size(); ++key)
      for (const std::vector<std::string>& name : names) {
        const Reference reference{columns, key, keys[key], name[key]};
        const auto same = [&](const Reference& other) {
          return other.of_columns == columns && other.key == key && other.value == reference.value;
        };
        if (std::ranges::none_of(all, same)) all.push_back(reference);
      }
  };
  add(table.row_keys, table.row_names, false);
  add(table.column_keys, table.column_values, true);
  return all;
}

/// Whether the name is the title of the column of this value, such as "stages 4".
bool is_title(const std::string& name, const Reference& reference, const Table& table) {
  if (!reference.of_columns || table.column_keys.size() != 1) return false;
  const auto column = std::ranges::find(table.column_names, name);
  return column != table.column_names.end() &&
         table.column_values[static_cast<std::size_t>(column - table.column_names.begin())][0] ==
             reference.value;
}

/// The only value that the name may mean.
Reference reference_of(const std::string& name, const Table& table) {
  const std::vector<Reference> all = references_in(table);
  const auto written = std::ranges::find(all, name, &Reference::text);
  if (written != all.end()) return *written;
  std::vector<std::string> known, meant;
  std::optional<Reference> found;
  for (const Reference& each : all) {
    if (std::ranges::count(known, each.value) == 0) known.push_back(each.value);
    if (each.value != name && !is_title(name, each, table)) continue;
    meant.push_back(each.text());
    found = each;
  }
  if (meant.size() > 1)
    throw Error(ErrorKind::Experiment,
                concat("'", name, "' is a value of several keys; give ", join(meant, " or ")),
                "--against");
  if (!found)
    throw Error(
        ErrorKind::Experiment,
        concat("no row or column of the table is called '", name, "'", suggestion(name, known)),
        "--against");
  return *found;
}

/// The row or column that has the reference's value and otherwise the values of another one; that
/// one itself if it has the value.
std::optional<std::size_t> with_value(std::size_t own, const Reference& reference,
                                      const Names& names) {
  std::vector<std::string> wanted = names[own];
  wanted[reference.key] = reference.value;
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// The keys other than the seed in which the runs of a cell differ.
std::vector<std::string> mixed_in(const TableCell& cell, const Table& table,
                                  const std::vector<RunRecord>& runs) {
  std::vector<std::string> mixed = table.mixed;
  std::erase_if(mixed, [&](const std::string& key) {
    return std::ranges::all_of(cell.runs, [&](std::size_t run) {
      return key_text(runs[run], key) == key_text(runs[cell.runs.front()], key);
    });
  });
  return mixed;
}

MeasuredGroup group_of(const Table& table, std::size_t row, std::size_t column,
                       const std::vector<RunRecord>& runs) {
  const TableCell& cell = table.cells[row][column];
  MeasuredGroup group{.name = cell_name(table, row, column),
                      .runs = static_cast<int>(cell.runs.size()),
                      .failed = cell.failed,
                      .failed_count = cell.uncounted < cell.failed,
                      .mixed = mixed_in(cell, table, runs),
                      .measured = {cell.values, cell.seeds}};
  for (const std::size_t run : cell.runs) {
    group.done += runs[run].done() ? 1 : 0;
    group.diverged += runs[run].diverged() ? 1 : 0;
  }
  return group;
}

using CellPairs = std::vector<std::pair<MeasuredGroup, MeasuredGroup>>;

CellPairs pairs_with(const std::string& name, const Table& table,
                     const std::vector<RunRecord>& runs) {
  const Reference reference = reference_of(name, table);
  CellPairs pairs;
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c) {
      std::optional<std::size_t> row = r, column = c;
      if (reference.of_columns)
        column = with_value(c, reference, table.column_values);
      else
        row = with_value(r, reference, table.row_names);
      if (!row || !column || (*row == r && *column == c)) continue;
      if (table.cells[r][c].empty() || table.cells[*row][*column].empty()) continue;
      pairs.emplace_back(group_of(table, r, c, runs), group_of(table, *row, *column, runs));
    }
  return pairs;
}

const char* answer(const ClaimTest& test, Better better) {
  if (!test.compared) return "not compared";
  if (test.outcome == Outcome::NotShown) {
    const bool all_equal = test.paired && test.wins == 0 && test.losses == 0;
    return all_equal ? "equal in all pairs" : "no difference shown";
  }
  const bool more = test.outcome == Outcome::Held;
  if (better == Better::NotJudged) return more ? "more" : "less";
  return more == (better == Better::Larger) ? "better" : "worse";
}

}  // namespace

std::vector<ClaimTest> differences_from(const std::string& name, const Table& table,
                                        const std::vector<RunRecord>& runs) {
  return compare_groups(pairs_with(name, table, runs), table.metric);
}

std::string print_differences(const std::string& name, const std::string& metric,
                              const std::vector<ClaimTest>& differences, TableFormat format) {
  if (differences.empty()) return concat("Nothing in the table stands beside ", name, ".\n");
  std::vector<std::string> sentences;
  for (const ClaimTest& test : differences)
    sentences.push_back(concat(test.of, ": ", answer(test, better_values(metric)), ". ", test.why));
  return print_list(
      concat("Against ", name, " in ", metric,
             is_time_to(metric)
                 ? ", as ratios of geometric means, by t tests of means of logarithms (paired"
                 : ", by t tests of differences of means (paired",
             " by seed where 3 seeds are in both, "
             "otherwise Welch's) at 5 % for all comparisons together (Holm)"),
      sentences, format);
}

}  // namespace pipewright
