// SPDX-License-Identifier: Apache-2.0
#include "core/reports/against.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

/// The row that is called as another one but for the name at one of its keys.
std::optional<std::size_t> partner_of(std::size_t row, std::size_t key, const std::string& name,
                                      const Table& table) {
  std::vector<std::string> wanted = table.row_names[row];
  if (std::exchange(wanted[key], name) == name) return std::nullopt;
  const auto found = std::ranges::find(table.row_names, wanted);
  if (found == table.row_names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - table.row_names.begin());
}

/// The key at which some row has the name.
std::optional<std::size_t> key_of(const std::string& name, const Table& table) {
  for (std::size_t key = 0; key < table.row_keys.size(); ++key)
    for (const std::vector<std::string>& row : table.row_names)
      if (row[key] == name) return key;
  return std::nullopt;
}

MeasuredGroup group_of(const Table& table, std::size_t row, std::size_t column,
                       const std::vector<RunRecord>& runs) {
  const TableCell& cell = table.cells[row][column];
  MeasuredGroup group{.name = cell_name(table, row, column),
                      .runs = static_cast<int>(cell.runs.size()),
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
  const std::optional<std::size_t> key = key_of(name, table);
  const auto column = std::ranges::find(table.column_names, name);
  if (!key && column == table.column_names.end()) {
    std::vector<std::string> known = table.column_names;
    for (const std::vector<std::string>& row : table.row_names)
      for (const std::string& each : row)
        if (std::ranges::count(known, each) == 0) known.push_back(each);
    throw Error(
        ErrorKind::Experiment,
        concat("no row or column of the table is called '", name, "'", suggestion(name, known)),
        "--against");
  }
  CellPairs pairs;
  const auto other_column = static_cast<std::size_t>(column - table.column_names.begin());
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c) {
      const std::optional<std::size_t> row = key ? partner_of(r, *key, name, table) : r;
      const std::size_t other = key ? c : other_column;
      if (!row || (*row == r && other == c)) continue;
      if (table.cells[r][c].empty() || table.cells[*row][other].empty()) continue;
      pairs.emplace_back(group_of(table, r, c, runs), group_of(table, *row, other, runs));
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
  const bool latex = format == TableFormat::Latex;
  const auto escaped = [&](const std::string& text) {
    return latex ? latex_text(text) : format == TableFormat::Markdown ? markdown_text(text) : text;
  };
  std::string text = escaped(
      concat("Against ", name, " in ", metric,
             ", by t tests of differences of means (paired by seed where 3 seeds are in both, "
             "otherwise Welch's) at 5 % for all comparisons together (Holm):"));
  text += latex ? "\n\\begin{itemize}\n" : "\n";
  for (const ClaimTest& test : differences)
    text += concat(latex ? "  \\item " : "- ", escaped(test.of), ": ",
                   std::string_view(answer(test, better_values(metric))), ". ", escaped(test.why),
                   "\n");
  return latex ? text + "\\end{itemize}\n" : text;
}

}  // namespace pipewright
