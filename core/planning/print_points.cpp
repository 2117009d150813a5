// SPDX-License-Identifier: Apache-2.0
#include "core/planning/print_points.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/base/markup.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/drawing/render_answer.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostLines = 40;  ///< of a table in a terminal

using State = SimulatedPoint::State;
using Line = std::vector<std::string>;

/// A table whose first `left` columns are words.
struct Lines {
  Line titles;
  std::size_t left = 0;
  std::vector<Line> rows;
};

std::string size_of(std::int64_t bytes) {
  return bytes_text(bytes);
}

/// The figures of a point as texts.
Line figures(const SimulatedPoint& point) {
  if (!point.simulated()) return Line(5, "–");
  return {pace_text(point.samples_per_second), time_text(point.seconds),
          percent_of(point.bubble, 1), size_of(point.largest_peak()),
          size_of(point.bytes_per_minibatch)};
}

const Line& figure_titles() {
  static const Line titles{"samples/s", "mini-batch", "bubble", "peak memory", "sent"};
  return titles;
}

std::string note_of(const SimulatedPoint& point) {
  if (point.fits()) return {};
  return concat(point.state == State::TooLarge ? "does not fit: " : "refused: ", point.reason);
}

/// The names of the candidates within kNear, with their paces: "zb_h1 (−0.3 %)".
std::string near_text(const SimulatedSweep& sweep, const BestCell& cell) {
  if (cell.alone) return "no other fits";
  std::vector<std::string> texts;
  const double most = sweep.points[*cell.best].samples_per_second;
  for (const std::size_t i : cell.near) {
    const double less = 100 * (1 - sweep.points[i].samples_per_second / most);
    texts.push_back(
        concat(sweep.points[i].candidate, less < 0.05 ? " (equal)" : printed(" (−%.1f %%)", less)));
  }
  return join(texts, ", ");
}

/// Calls `take(map, row, column, cell)` for each cell that has points.
template <class Take>
void for_each_cell(const BestPoints& best, const Take& take) {
  for (const BestMap& map : best.maps)
    for (std::size_t row = 0; row < map.cells.size(); ++row)
      for (std::size_t column = 0; column < map.cells[row].size(); ++column)
        if (!map.cells[row][column].points.empty()) take(map, row, column, map.cells[row][column]);
}

/// The best point of each combination.
Lines best_lines(const SimulatedSweep& sweep, const BestPoints& best) {
  Lines lines;
  lines.titles = best.conditions;
  lines.titles.push_back(best.y);
  if (!best.x.empty()) lines.titles.push_back(best.x);
  lines.titles.insert(lines.titles.end(), {"best", "with"});
  lines.left = lines.titles.size();
  lines.titles.insert(lines.titles.end(), figure_titles().begin(), figure_titles().end());
  lines.titles.emplace_back("within 1 %");
  for_each_cell(best,
                [&](const BestMap& map, std::size_t row, std::size_t column, const BestCell& cell) {
                  Line& line = lines.rows.emplace_back(map.conditions);
                  line.push_back(best.y_values[row]);
                  if (!best.x.empty()) line.push_back(best.x_values[column]);
                  if (!cell.best) {
                    line.insert(line.end(), {why_none(sweep, cell), ""});
                    line.resize(lines.titles.size());
                    return;
                  }
                  const SimulatedPoint& point = sweep.points[*cell.best];
                  line.insert(line.end(), {point.candidate, choices_text(sweep, best, *cell.best)});
                  for (std::string& figure : figures(point)) line.push_back(std::move(figure));
                  line.push_back(near_text(sweep, cell));
                });
  return lines;
}

Lines point_lines(const SimulatedSweep& sweep) {
  Lines lines{.titles = {"point"}, .left = 1};
  lines.titles.insert(lines.titles.end(), figure_titles().begin(), figure_titles().end());
  lines.titles.emplace_back("");
  for (const SimulatedPoint& point : sweep.points) {
    Line& line = lines.rows.emplace_back(Line{point.title});
    for (std::string& figure : figures(point)) line.push_back(std::move(figure));
    line.push_back(note_of(point));
  }
  return lines;
}

std::string in_terminal(const Lines& lines) {
  std::vector<std::size_t> left(lines.left);
  for (std::size_t c = 0; c < lines.left; ++c) left[c] = c;
  left.push_back(lines.titles.size() - 1);
  TextTable table(lines.titles, left);
  const std::size_t shown = std::min(lines.rows.size(), kMostLines);
  for (std::size_t r = 0; r < shown; ++r) table.add(lines.rows[r]);
  std::string text = table.text();
  if (lines.rows.size() > shown)
    text += concat(" … and ", counted(lines.rows.size() - shown, "more line"),
                   "; --csv FILE writes all\n");
  return text;
}

std::string counts(const SimulatedSweep& sweep) {
  const std::size_t refused = sweep.count(State::Refused), large = sweep.count(State::TooLarge);
  std::string text =
      concat(counted(sweep.points.size(), "point"), ": ",
             grouped_text(static_cast<double>(sweep.points.size() - refused)), " simulated");
  if (large > 0)
    text += concat(", of which ", grouped_text(static_cast<double>(large)),
                   large == 1 ? " does" : " do", " not fit into memory");
  if (refused > 0) text += concat("; ", grouped_text(static_cast<double>(refused)), " refused");
  return text;
}

/// The number of simulated mini-batches on which the figures rest.
std::string basis(const SimulatedSweep& sweep) {
  int least = 0, most = 0;
  std::size_t unsteady = 0;
  for (const SimulatedPoint& point : sweep.points) {
    if (!point.simulated()) continue;
    least = least == 0 ? point.minibatches : std::min(least, point.minibatches);
    most = std::max(most, point.minibatches);
    unsteady += point.steady ? 0 : 1;
  }
  if (most == 0) return {};
  std::string text =
      concat("Figures are of the steady part of ", least,
             least < most ? concat(" to ", most) : std::string(),
             " simulated mini-batches, until its two halves had the same pace and no worker held "
             "more later");
  if (unsteady > 0)
    text += concat("; ", grouped_text(static_cast<double>(unsteady)),
                   " of the points did not come so far, and theirs are those of `simulate`");
  if (!sweep.untimed.empty())
    text += concat(".\nThe hardware does not say how fast ", join(sweep.untimed, ", "),
                   " encodes and decodes (codecs: in its file); only bytes are counted");
  return text +
         ".\nThe best is the fastest that fits; what stale weights cost in accuracy is no part of "
         "it.\n";
}

/// "zb_h1", "zb_h1 ≈" or "zb_h1 (alone)"; why there is none; "" without points.
std::string cell_text(const SimulatedSweep& sweep, const BestCell& cell) {
  if (!cell.best) return cell.points.empty() ? "" : why_none(sweep, cell);
  const std::string& name = sweep.points[*cell.best].candidate;
  return cell.alone ? name + " (alone)" : cell.near.empty() ? name : name + " ≈";
}

/// The best candidates as a grid of words, with ≈ where others are within kNear.
std::string word_maps(const BestPoints& best, const SimulatedSweep& sweep) {
  std::string text = concat("The fastest, ", best.y, " downwards",
                            best.x.empty() ? std::string() : concat(", ", best.x, " to the right"),
                            "; ≈: others are within 1 %, alone: no other fits\n");
  for (const BestMap& map : best.maps) {
    const std::string conditions = conditions_text(best, map);
    text += conditions.empty() ? "\n" : concat("\n", conditions, "\n");
    Line titles{best.y};
    titles.insert(titles.end(), best.x_values.begin(), best.x_values.end());
    if (best.x.empty()) titles.back() = "best";
    std::vector<std::size_t> left(titles.size());
    for (std::size_t c = 0; c < left.size(); ++c) left[c] = c;
    TextTable table(titles, left);
    for (std::size_t row = 0; row < map.cells.size(); ++row) {
      Line line{best.y_values[row]};
      for (const BestCell& cell : map.cells[row]) line.push_back(cell_text(sweep, cell));
      table.add(line);
    }
    text += table.text();
  }
  return text;
}

/// Each reason with the number of points that it is the reason of.
std::string reasons(const SimulatedSweep& sweep, State state, const char* title) {
  std::map<std::string, std::size_t> number;
  std::vector<std::string> order;
  for (const SimulatedPoint& point : sweep.points)
    if (point.state == state && number[point.reason]++ == 0) order.push_back(point.reason);
  if (order.empty()) return {};
  std::ranges::stable_sort(order, std::greater{},
                           [&](const auto& reason) { return number[reason]; });
  constexpr std::size_t kMost = 8;
  std::string text = concat("\n", title, "\n");
  for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i)
    text += concat(" ", counted(number[order[i]], "point"), ": ", order[i], "\n");
  if (order.size() > kMost)
    text += concat(" … and ", counted(order.size() - kMost, "more reason"), "\n");
  return text;
}

/// "best", "within 1 %" or "" of each point.
std::vector<const char*> marks(const SimulatedSweep& sweep, const BestPoints& best) {
  std::vector<const char*> marks(sweep.points.size(), "");
  for_each_cell(best, [&](const BestMap&, std::size_t, std::size_t, const BestCell& cell) {
    for (const std::size_t i : cell.near) marks[i] = "within 1 %";
    if (cell.best) marks[*cell.best] = "best";
  });
  return marks;
}

const char* state_text(State state) {
  return state == State::Fits ? "fits" : state == State::TooLarge ? "too large" : "refused";
}

std::string csv_figures(const SimulatedPoint& point) {
  if (!point.simulated()) return ",,,,,,,";
  std::vector<std::string> peaks;
  for (const std::int64_t peak : point.peaks) peaks.push_back(std::to_string(peak));
  return concat(point.seconds, ",", point.samples_per_second, ",", point.bubble, ",",
                point.largest_peak(), ",", join(peaks, " "), ",", point.bytes_per_minibatch, ",",
                point.minibatches, ",", point.steady ? "yes" : "no");
}

Value point_value(const SimulatedSweep& sweep, const SimulatedPoint& point, const char* mark) {
  Value value =
      mapping_of({{"title", Value::of(point.title)}, {"candidate", Value::of(point.candidate)}});
  Value& varied = value.at_or_add("varied") = Value::mapping();
  for (std::size_t k = 0; k < sweep.keys.size(); ++k)
    if (!point.values[k].is(Value::Kind::Null)) varied.at_or_add(sweep.keys[k]) = point.values[k];
  value.at_or_add("state") = Value::of(state_text(point.state));
  if (!point.reason.empty()) value.at_or_add("reason") = Value::of(point.reason);
  if (point.workers > 0) value.at_or_add("workers") = Value::of(point.workers);
  if (!point.simulated()) return value;
  value.at_or_add("minibatches") = Value::of(point.minibatches);
  value.at_or_add("steady") = Value::of(point.steady);
  value.at_or_add("seconds_per_minibatch") = Value::of(point.seconds);
  value.at_or_add("samples_per_second") = Value::of(point.samples_per_second);
  value.at_or_add("bubble") = Value::of(point.bubble);
  Value& peaks = value.at_or_add("peak_bytes") = Value::sequence();
  for (const std::int64_t peak : point.peaks) peaks.items.push_back(Value::of(peak));
  value.at_or_add("bytes_per_minibatch") = Value::of(point.bytes_per_minibatch);
  value.at_or_add("mark") = Value::of(mark);
  return value;
}

}  // namespace

std::string sweep_text(const SimulatedSweep& sweep, const BestPoints& best) {
  std::string text = concat(sweep.name, ": ", counts(sweep), "\n\n", word_maps(best, sweep), "\n",
                            in_terminal(best_lines(sweep, best)));
  const std::string legend = choices_legend(best);
  if (!legend.empty()) text += concat(" ", legend, "\n");
  if (sweep.points.size() <= kMostLines)
    text += concat("\n", in_terminal(point_lines(sweep)));
  else
    text += "\n--csv and --json FILE write all points.\n";
  return concat(text, reasons(sweep, State::TooLarge, "Do not fit into memory"),
                reasons(sweep, State::Refused, "Refused"), "\n", basis(sweep));
}

std::string sweep_csv(const SimulatedSweep& sweep, const BestPoints& best) {
  std::string text;
  for (const std::string& key : sweep.keys) text += csv_text(key) + ",";
  text +=
      "candidate,workers,state,seconds_per_minibatch,samples_per_second,bubble,peak_bytes,"
      "peak_bytes_of_workers,bytes_per_minibatch,minibatches,steady,mark,reason\n";
  const std::vector<const char*> mark = marks(sweep, best);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SimulatedPoint& point = sweep.points[i];
    for (const std::string& key : sweep.keys) {
      const std::string value = sweep.text_of(point, key);
      text += concat(value == "–" ? "" : csv_text(value), ",");
    }
    text += concat(csv_text(point.candidate), ",",
                   point.workers > 0 ? std::to_string(point.workers) : std::string(), ",",
                   state_text(point.state), ",", csv_figures(point), ",", mark[i], ",",
                   csv_text(point.reason), "\n");
  }
  return text;
}

Value sweep_value(const SimulatedSweep& sweep, const BestPoints& best) {
  Value value = Value::mapping();
  value.at_or_add("name") = Value::of(sweep.name);
  Value& origins = value.at_or_add("costs_from") = Value::sequence();
  for (const std::string& origin : sweep.costs_from) origins.items.push_back(Value::of(origin));
  value.at_or_add("x") = Value::of(best.x);
  value.at_or_add("y") = Value::of(best.y);
  const std::vector<const char*> mark = marks(sweep, best);
  Value& points = value.at_or_add("points") = Value::sequence();
  for (std::size_t i = 0; i < sweep.points.size(); ++i)
    points.items.push_back(point_value(sweep, sweep.points[i], mark[i]));
  return value;
}

}  // namespace pipewright
