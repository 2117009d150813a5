// SPDX-License-Identifier: Apache-2.0
#include "core/tables/best_cells.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/tables/mean_difference.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostNames = 3;

struct NamedCell {
  const TableCell* cell;
  std::string name;  ///< "vgg16, PD4"
};

/// The cells with numbers, the best first, and last those in which runs failed that count with no
/// number: the mean of the runs that survived is none of all runs. Where runs have not reached a
/// loss, there is none.
std::vector<NamedCell> ranking(const Table& table) {
  std::vector<NamedCell> cells;
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c)
      if (const TableCell& cell = table.cells[r][c];
          !cell.values.empty() && !(is_time_to(table.metric) && cell.not_reached() > 0))
        cells.push_back({&cell, cell_name(table, r, c)});
  const bool smaller = better_values(table.metric) == Better::Smaller;
  std::ranges::stable_sort(cells, [&](const NamedCell& a, const NamedCell& b) {
    if ((a.cell->uncounted > 0) != (b.cell->uncounted > 0)) return b.cell->uncounted > 0;
    return smaller ? a.cell->mean() < b.cell->mean() : a.cell->mean() > b.cell->mean();
  });
  return cells;
}

/// The cells that cannot be distinguished from a given one. Those with failed runs are none of
/// them, and those that cannot be compared only where no cell can.
struct Ties {
  std::vector<std::string> names;
  bool not_compared = true;
  bool not_finite = false;  ///< some cannot because of a value that is not finite
};

bool all_comparable(const TableCell& cell) {
  return std::ranges::all_of(cell.values, is_comparable);
}

Ties ties_with(std::size_t index, const std::vector<NamedCell>& cells, bool of_shares) {
  Ties ties;
  std::vector<std::string> not_compared;
  const TableCell& one = *cells[index].cell;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == index) continue;
    const TableCell& other = *cells[i].cell;
    if (other.uncounted > 0) continue;
    const bool finite = all_comparable(one) && all_comparable(other);
    const auto compared =
        finite ? compare_means({one.values, one.seeds}, {other.values, other.seeds}, of_shares)
               : std::nullopt;
    ties.not_finite = ties.not_finite || !finite;
    if (!compared)
      not_compared.push_back(cells[i].name);
    else if (compared->p() > 0.05)
      ties.names.push_back(cells[i].name);
    ties.not_compared = ties.not_compared && !compared;
  }
  if (ties.not_compared) ties.names = not_compared;
  return ties;
}

/// A cell with its mean: "vgg16, PD4 (93.10)". Failed runs stand beside it, because it may be among
/// the last for them alone: "vgg16, PD4 (93.10, 1 of 3 runs failed)".
std::string shown(const Table& table, const NamedCell& named) {
  const TableCell& cell = *named.cell;
  const std::string failed =
      cell.uncounted == 0
          ? ""
          : concat(", ", cell.uncounted, " of ", counted(cell.runs.size(), "run"), " failed");
  return concat(named.name, " (", shown_number(table.metric, cell.mean()), failed, ")");
}

/// "gpipe", "2 others (gpipe; xpipe)", "the other", "any of the 4 others".
std::string names_of(const Ties& ties, std::size_t others) {
  if (ties.names.size() == others)
    return others == 1 ? std::string("the other") : concat("any of the ", others, " others");
  if (ties.names.size() == 1) return ties.names.front();
  std::vector<std::string> names = ties.names;
  if (names.size() > kMostNames) {
    names.resize(kMostNames);
    names.emplace_back("…");
  }
  return concat(counted(ties.names.size(), "other"), " (", join(names, "; "), ")");
}

/// `difference`: better or worse.
std::string words_of(const Ties& ties, std::size_t others, std::string_view difference) {
  if (ties.names.empty()) return {};
  if (ties.not_compared)
    return concat(", not compared with ", names_of(ties, others), ": ",
                  ties.not_finite ? "not all values are finite, or some are too large to compare"
                                  : "fewer than 3 runs each");
  return concat(", not significantly ", difference, " at the 5 % level than ",
                names_of(ties, others));
}

/// ", equal to the other": which cells have the mean of the best, which is the first.
std::string equals_of(const std::vector<NamedCell>& cells) {
  Ties equal;
  const TableCell& best = *cells[0].cell;
  for (std::size_t i = 1; i < cells.size(); ++i)
    if (const TableCell& cell = *cells[i].cell;
        cell.mean() == best.mean() && cell.uncounted == best.uncounted)
      equal.names.push_back(cells[i].name);
  if (equal.names.empty()) return {};
  return concat(", equal to ", names_of(equal, cells.size() - 1));
}

}  // namespace

/// "; not reached by all runs of 2 other cells": those that the ranking leaves out.
std::string unreached(const Table& table) {
  int cells = 0;
  for (const auto& row : table.cells)
    for (const TableCell& cell : row) cells += !cell.values.empty() && cell.not_reached() > 0;
  if (!is_time_to(table.metric) || cells == 0) return {};
  return concat("; not all runs of ", counted(cells, "other"), " reached the loss");
}

std::optional<BestCells> best_cells(const Table& table) {
  if (better_values(table.metric) == Better::NotJudged) return std::nullopt;
  const std::vector<NamedCell> cells = ranking(table);
  if (cells.empty()) return std::nullopt;
  const std::size_t others = cells.size() - 1;
  const bool of_shares = is_share(table.metric);
  const Ties with_best = ties_with(0, cells, of_shares);
  BestCells best{.sentence = concat("Best: ", shown(table, cells[0]),
                                    with_best.not_compared ? equals_of(cells) : "",
                                    words_of(with_best, others, "better")),
                 .run = cells[0].cell->runs.front()};
  const TableCell &first = *cells.front().cell, &last = *cells.back().cell;
  if (others == 0 || (first.mean() == last.mean() && last.uncounted == 0)) {
    best.sentence += unreached(table);
    return best;
  }
  best.sentence += concat("; worst: ", shown(table, cells.back()));
  if (with_best.names.size() < others)
    best.sentence += words_of(ties_with(others, cells, of_shares), others, "worse");
  best.sentence += unreached(table);
  return best;
}

}  // namespace pipewright
