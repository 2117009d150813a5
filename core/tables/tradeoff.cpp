// SPDX-License-Identifier: Apache-2.0
#include "core/tables/tradeoff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/markup.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

/// The table of another metric of the same runs, with the same rows and columns.
Table table_of(TableSpec spec, const std::string& metric, const std::vector<RunRecord>& runs) {
  spec = spec.with_metric({.name = metric, .place = spec.metric.place});
  spec.published.reset();
  return make_table(spec, runs);
}

/// Hours in the unit that suits them: "3.21 h", "70.1 ns".
std::string time_of(double hours) {
  if (!std::isfinite(hours)) return "–";
  struct Unit {
    double hours;
    const char* name;
  };
  constexpr double kSecond = 1.0 / 3600;
  constexpr std::array<Unit, 6> kUnits{{{1, "h"},
                                        {1.0 / 60, "min"},
                                        {kSecond, "s"},
                                        {1e-3 * kSecond, "ms"},
                                        {1e-6 * kSecond, "µs"},
                                        {1e-9 * kSecond, "ns"}}};
  const auto found = std::ranges::find_if(kUnits, [&](const Unit& u) { return hours >= u.hours; });
  const Unit& unit = found == kUnits.end() ? kUnits.back() : *found;
  return printed("%.4g %s", hours / unit.hours, unit.name);
}

std::string metric_of(const TradeoffRow& row, bool percent) {
  if (row.not_reached > 0) return concat("not reached by ", row.not_reached, " of ", row.runs);
  return concat(shown_mean(percent, row.metric, row.runs > 1 ? row.std : kNoNumber), " (",
                runs_text(row), ")");
}

std::string line_of(const TradeoffRow& row, bool percent) {
  return concat(
      "| ", markdown_text(row.name), " | ", metric_of(row, percent), " | ", time_of(row.time),
      " | ",
      printed("%.4g | %.1f | %.3g | ", row.samples_per_second, 100 * row.bubble, row.worker_gib),
      row.efficient ? "★" : " ", " |\n");
}

}  // namespace

void mark_efficient(std::vector<TradeoffRow>& rows, bool smaller) {
  const auto judged = [](const TradeoffRow& row) {
    return row.failed == 0 && std::isfinite(row.metric) && std::isfinite(row.time);
  };
  const auto faster = [](const TradeoffRow& a, const TradeoffRow& b) {
    return a.time < 0.999 * b.time;
  };
  const auto beats = [&](const TradeoffRow& a, const TradeoffRow& b) {
    const bool as_good = smaller ? a.metric <= b.metric : a.metric >= b.metric;
    return as_good && !faster(b, a) && (a.metric != b.metric || faster(a, b));
  };
  for (TradeoffRow& row : rows)
    row.efficient = judged(row) && std::ranges::none_of(rows, [&](const TradeoffRow& other) {
                      return judged(other) && beats(other, row);
                    });
}

std::size_t diverged_runs(const TableCell& cell, const std::vector<RunRecord>& runs) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell.runs, [&](std::size_t run) { return runs[run].diverged(); }));
}

std::string runs_text(const TradeoffRow& row) {
  if (row.failed == 0) return concat(row.runs);
  return concat(row.runs, ", ", row.failed, row.failed == row.diverged ? " diverged" : " failed");
}

std::vector<TradeoffRow> make_tradeoff(const TableSpec& spec, const std::vector<RunRecord>& runs) {
  const Table reached = table_of(spec, spec.metric.name, runs),
              hours = table_of(spec, "modelled_hours", runs),
              rate = table_of(spec, "modelled_samples_per_second", runs),
              bubble = table_of(spec, "modelled_bubble", runs),
              memory = table_of(spec, "modelled_worker_state_gib", runs);
  std::vector<TradeoffRow> rows;
  for (std::size_t r = 0; r < reached.cells.size(); ++r)
    for (std::size_t c = 0; c < reached.cells[r].size(); ++c) {
      const TableCell& cell = reached.cells[r][c];
      if (cell.values.empty()) continue;
      rows.push_back({.name = cell_name(reached, r, c),
                      .metric = cell.mean(),
                      .std = cell.values.size() > 1 ? cell.std() : 0,
                      .runs = cell.values.size(),
                      .diverged = diverged_runs(cell, runs),
                      .failed = static_cast<std::size_t>(cell.uncounted),
                      .not_reached = is_time_to(spec.metric.name) ? cell.not_reached() : 0,
                      .time = hours.cells[r][c].mean(),
                      .samples_per_second = rate.cells[r][c].mean(),
                      .bubble = bubble.cells[r][c].mean(),
                      .worker_gib = memory.cells[r][c].mean()});
    }
  mark_efficient(rows, better_values(spec.metric.name) == Better::Smaller);
  std::ranges::sort(rows, {}, [](const TradeoffRow& row) {  // those without a time are the last
    return std::isfinite(row.time) ? row.time : std::numeric_limits<double>::infinity();
  });
  return rows;
}

std::string print_tradeoff(const TableSpec& spec, const std::vector<TradeoffRow>& rows) {
  const bool percent = is_share(spec.metric.name);
  const std::string metric = markdown_text(spec.metric.name), unit = unit_of(spec.metric.name);
  const bool some_failed =
      std::ranges::any_of(rows, [](const TradeoffRow& row) { return row.failed > 0; });
  std::string text = concat(
      metric,
      percent        ? " in percent"
      : unit.empty() ? ""
                     : concat(" in ", unit),
      " against the time modelled on ", markdown_text(spec.hardware.stem().string()),
      "; ★ marks those that no other beats in both",
      some_failed ? ", among those of which no run failed" : "", ".\n\n| | ", metric,
      " | time of the whole training | samples/s | bubble in % | GiB of state on the fullest "
      "worker | |\n|:--|--:|--:|--:|--:|"
      "--:|:--|\n");
  for (const TradeoffRow& row : rows) text += line_of(row, percent);
  return text;
}

}  // namespace pipewright
