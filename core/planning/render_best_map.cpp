// SPDX-License-Identifier: Apache-2.0
#include "core/planning/print_points.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/render_answer.h"
#include "core/drawing/render_page.h"

namespace pipewright {
namespace {

constexpr double kMargin = 28, kHeading = 72, kMapTitle = 40, kAxis = 46, kRowNames = 58;
constexpr double kCellHeight = 50, kCellGap = 3, kMapGap = 26, kLegendLine = 20, kTextLine = 16;
constexpr double kWidestCell = 150, kNarrowestCell = 26, kMapWidth = 1180;
constexpr double kSmallestPage = 560;
constexpr double kStripe = 9;

/// Light fills on which dark text reads, told apart by people who see no red or no green: their
/// lightness differs, too. There are more candidates than colours at worst; names tell them apart.
constexpr std::array kFills = {"#8fc1e8", "#f7c58c", "#b7dfb0", "#d9b3dd", "#f3e68a", "#7fcfc4",
                               "#f2a7a0", "#c9bfae", "#b3b9ee", "#d3ec9a", "#e9cfe4", "#a9d5ef"};
constexpr const char* kNone = "#e3e7ee";

class BestMapPage {
 public:
  BestMapPage(const SimulatedSweep& sweep, const BestPoints& best, const std::string& title)
      : sweep_(sweep),
        best_(best),
        cell_(cell_width()),
        named_(cell_ - 2 * kCellGap >= longest_name()),
        maps_across_(maps_across()),
        legend_(legend_lines()),
        page_(page_width(), page_height(), title) {
    page_.text(kMargin, 34, title, {.size = 18, .bold = true});
    page_.text(kMargin, 53, subtitle(), {.color = palette::kQuiet});
  }

  std::string svg() && {
    for (std::size_t m = 0; m < best_.maps.size(); ++m) draw_map(m);
    draw_legend();
    return std::move(page_).svg();
  }

 private:
  double columns() const { return static_cast<double>(best_.x_values.size()); }
  double rows() const { return static_cast<double>(best_.y_values.size()); }

  double cell_width() const {
    return std::clamp(std::floor(kMapWidth / columns()), kNarrowestCell, kWidestCell);
  }
  double longest_name() const {
    double longest = 0;
    for (const std::string& name : best_.candidates)
      longest = std::max(longest, text_width(name, 12) + kStripe + 6);
    return longest;
  }
  double map_width() const { return kRowNames + columns() * cell_; }
  double map_title() const { return best_.conditions.empty() ? 14 : kMapTitle; }
  double map_height() const { return map_title() + rows() * kCellHeight + kAxis; }
  std::size_t maps_across() const {
    const auto fit = static_cast<std::size_t>((kMapWidth + kMapGap) / (map_width() + kMapGap));
    return std::clamp<std::size_t>(fit, 1, std::max<std::size_t>(1, best_.maps.size()));
  }
  std::size_t maps_down() const { return (best_.maps.size() + maps_across_ - 1) / maps_across_; }
  double page_width() const {
    const auto across = static_cast<double>(maps_across_);
    return std::max({kSmallestPage, 2 * kMargin + across * map_width() + (across - 1) * kMapGap,
                     2 * kMargin + candidates_width()});
  }
  double legend_top() const {
    return kHeading + static_cast<double>(maps_down()) * (map_height() + kMapGap);
  }
  double page_height() const { return legend_top() + legend_height() + kMargin; }

  std::string subtitle() const {
    const std::size_t refused = sweep_.count(SimulatedPoint::State::Refused);
    const std::size_t large = sweep_.count(SimulatedPoint::State::TooLarge);
    std::string text = counted(sweep_.points.size(), "point");
    if (refused > 0) text += concat("; ", grouped_text(static_cast<double>(refused)), " refused");
    if (large > 0)
      text += concat("; ", grouped_text(static_cast<double>(large)), " do not fit into memory");
    return text;
  }

  std::size_t candidate_of(std::size_t point) const {
    return static_cast<std::size_t>(
        std::ranges::find(best_.candidates, sweep_.points[point].candidate) -
        best_.candidates.begin());
  }
  static const char* fill_of(std::size_t candidate) { return kFills[candidate % kFills.size()]; }
  /// "A" to "Z", then "A1" and so on.
  static std::string letter_of(std::size_t candidate) {
    const std::string letter(1, static_cast<char>('A' + candidate % 26));
    return candidate < 26 ? letter : letter + std::to_string(candidate / 26);
  }
  std::string name_of(std::size_t point) const {
    return named_ ? sweep_.points[point].candidate : letter_of(candidate_of(point));
  }

  void draw_map(std::size_t m) {
    const BestMap& map = best_.maps[m];
    const std::size_t across = m % maps_across_, down = m / maps_across_;
    const double left = kMargin + static_cast<double>(across) * (map_width() + kMapGap);
    const double top = kHeading + static_cast<double>(down) * (map_height() + kMapGap);
    page_.text(left, top + 12, conditions_text(best_, map), {.size = 12.5, .bold = true});
    const double bottom = top + map_title() + rows() * kCellHeight;
    for (std::size_t row = 0; row < map.cells.size(); ++row) {
      const double y = bottom - static_cast<double>(row + 1) * kCellHeight;
      page_.text(left + kRowNames - 10, y + kCellHeight / 2 + 4, best_.y_values[row],
                 {.size = 12, .anchor = "end"});
      for (std::size_t column = 0; column < map.cells[row].size(); ++column)
        draw_cell(map.cells[row][column], left + kRowNames + static_cast<double>(column) * cell_,
                  y);
    }
    page_.text(left, top + map_title() - 2, best_.y, {.size = 10.5, .color = palette::kQuiet});
    for (std::size_t column = 0; column < best_.x_values.size(); ++column)
      page_.text(left + kRowNames + (static_cast<double>(column) + 0.5) * cell_, bottom + 17,
                 best_.x_values[column], {.size = 12, .anchor = "middle"});
    page_.text(left + kRowNames + columns() * cell_ / 2, bottom + 35, best_.x,
               {.size = 10.5, .color = palette::kQuiet, .anchor = "middle"});
  }

  void draw_cell(const BestCell& cell, double x, double y) {
    const double width = cell_ - kCellGap, height = kCellHeight - kCellGap;
    if (cell.points.empty()) {
      page_.box(x, y, width, height, palette::kLane);
      return;
    }
    if (!cell.best) {
      page_.box(x, y, width, height, kNone, 3, tooltip(cell));
      const std::string text = why_none(sweep_, cell);
      page_.text(x + width / 2, y + height / 2 + 4,
                 text_width(text, 11) < width ? text : std::string("–"),
                 {.color = palette::kQuiet, .anchor = "middle", .italic = true});
      return;
    }
    page_.box(x, y, width, height, fill_of(candidate_of(*cell.best)), 3, tooltip(cell));
    const double left = width - (cell.near.empty() ? 0 : kStripe);
    if (!cell.near.empty())
      page_.box(x + left, y, kStripe, height, fill_of(candidate_of(cell.near.front())), 3, {},
                palette::kPaper);
    write(cell, x + left / 2, y, room_in(cell));
  }

  /// Writes as many lines as fit: the best, the others within kNear, what was chosen, the pace.
  void write(const BestCell& cell, double middle, double y, double room) {
    const auto line = [&](double at, const std::string& text, const TextStyle& style) {
      if (!text.empty() && fits(text, style.size, room)) page_.text(middle, y + at, text, style);
    };
    page_.text(middle, y + 15, name_of(*cell.best), {.size = 12, .anchor = "middle", .bold = true});
    line(28, choices_and_pace(*cell.best, room), {.size = 10, .anchor = "middle"});
    if (cell.alone) line(41, "no other fits", {.size = 10, .anchor = "middle", .italic = true});
    if (cell.near.empty()) return;
    const std::string others = cell.near.size() == 1
                                   ? name_of(cell.near.front())
                                   : concat(name_of(cell.near.front()), " +", cell.near.size() - 1);
    const std::string text = concat("≈ ", others);
    line(41, fits(text, 10, room) ? text : concat("≈ ", cell.near.size()),
         {.size = 10, .anchor = "middle", .italic = true});
  }

  /// "M 8, N 4 · 120/s" of a point, or the first of them that fits; "" if that does not.
  std::string choices_and_pace(std::size_t best, double room) const {
    const std::string choices = choices_text(sweep_, best_, best);
    const std::string first = choices.empty() ? pace(best) : choices;
    const std::string both = choices.empty() ? first : concat(choices, " · ", pace(best));
    if (fits(both, 10, room)) return both;
    return fits(first, 10, room) ? first : std::string();
  }
  double room_in(const BestCell& cell) const {
    return cell_ - kCellGap - (cell.near.empty() ? 0 : kStripe) - 4;
  }

  /// Whether a text fits, in fonts that are somewhat wider than Helvetica, too.
  static bool fits(const std::string& text, double size, double room) {
    constexpr double kWiderFonts = 1.1;
    return kWiderFonts * text_width(text, size) <= room;
  }

  std::string pace(std::size_t i) const {
    return pace_text(sweep_.points[i].samples_per_second) + "/s";
  }

  std::string tooltip(const BestCell& cell) const {
    std::string text;
    if (cell.best) {
      const SimulatedPoint& point = sweep_.points[*cell.best];
      text = concat(point.title, ": ", pace(*cell.best), ", ", time_text(point.seconds),
                    " a mini-batch, bubble ", std::lround(100 * point.bubble), " %, ",
                    bytes_text(point.largest_peak()), " at most");
      for (const std::size_t i : cell.near)
        text += concat("; ", sweep_.points[i].candidate, ": ", pace(i));
    } else {
      text = sweep_.points[cell.points.front()].reason;
    }
    return text;
  }

  /// The candidates that are best, or within kNear of the best, somewhere.
  std::vector<std::pair<std::size_t, std::size_t>> shown() const {
    std::vector<std::size_t> best(best_.candidates.size()), near(best_.candidates.size());
    for (const BestMap& map : best_.maps)
      for (const auto& row : map.cells)
        for (const BestCell& cell : row) {
          if (cell.best) ++best[candidate_of(*cell.best)];
          for (const std::size_t i : cell.near) ++near[candidate_of(i)];
        }
    std::vector<std::pair<std::size_t, std::size_t>> counts;
    for (std::size_t c = 0; c < best.size(); ++c) counts.emplace_back(best[c], near[c]);
    return counts;
  }

  double legend_height() const {
    return static_cast<double>(best_.candidates.size()) * kLegendLine + 8 +
           static_cast<double>(legend_.size()) * kTextLine;
  }

  /// "best in 3 cells, within 1 % in 2"
  static std::string count_text(const std::pair<std::size_t, std::size_t>& count) {
    return concat("best in ", counted(count.first, "cell"),
                  count.second > 0 ? concat(", within 1 % in ", count.second) : "");
  }
  double longest_candidate() const {
    double longest = 0;
    for (const std::string& name : best_.candidates)
      longest = std::max(longest, text_width(name, 12));
    return longest;
  }
  double candidates_width() const {
    double longest = 0;
    for (const auto& count : shown())
      longest = std::max(longest, text_width(count_text(count), 11));
    return 56 + longest_candidate() + longest;
  }

  /// What the signs in cells mean, without those that no cell has, and what "best" leaves out.
  std::vector<std::string> legend_lines() const {
    std::vector<std::string> written;  // in cells
    bool near = false;
    for (const BestMap& map : best_.maps)
      for (const auto& row : map.cells)
        for (const BestCell& cell : row) {
          near |= !cell.near.empty();
          if (cell.best) written.push_back(choices_and_pace(*cell.best, room_in(cell)));
        }
    const auto some = [&](const std::string& sign) {
      return std::ranges::any_of(
          written, [&](const std::string& text) { return text.find(sign) != std::string::npos; });
    };
    std::vector<std::string> parts;
    const std::string letters = choices_legend(best_);
    if (!letters.empty())
      for (const std::string& letter : split(letters, ','))
        if (const std::string part(trimmed(letter)); some(part.substr(0, 1) + " "))
          parts.push_back(part);
    std::vector<std::string> signs;
    if (!parts.empty()) signs.push_back(join(parts, ", "));
    if (some("/s")) signs.emplace_back("/s: samples a second");
    if (near) signs.emplace_back("≈ and a stripe: others within 1 % of the best");
    std::vector<std::string> lines = wrapped(join(signs, "; "));
    for (std::string& line :
         wrapped("The best is the fastest that fits; what stale weights cost in "
                 "accuracy is no part of it."))
      lines.push_back(std::move(line));
    return lines;
  }

  /// The words of a text in lines that fit onto the page.
  std::vector<std::string> wrapped(const std::string& text) const {
    std::vector<std::string> lines;
    if (text.empty()) return lines;
    for (const std::string& word : split(text, ' ')) {
      const std::string longer = lines.empty() ? word : concat(lines.back(), " ", word);
      if (!lines.empty() && fits(longer, TextStyle().size, page_width() - 2 * kMargin))
        lines.back() = longer;
      else
        lines.push_back(word);
    }
    return lines;
  }

  void draw_legend() {
    double y = legend_top();
    const double longest = longest_candidate();
    const auto counts = shown();
    for (std::size_t c = 0; c < best_.candidates.size(); ++c) {
      page_.box(kMargin, y, 22, 14, fill_of(c));
      page_.text(kMargin + 11, y + 11, letter_of(c),
                 {.size = 10, .anchor = "middle", .bold = true});
      page_.text(kMargin + 32, y + 11.5, best_.candidates[c], {.size = 12});
      page_.text(kMargin + 56 + longest, y + 11.5, count_text(counts[c]),
                 {.size = 11, .color = palette::kQuiet});
      y += kLegendLine;
    }
    y += 2;
    for (const std::string& line : legend_)
      page_.text(kMargin, y += kTextLine, line, {.color = palette::kQuiet});
  }

  const SimulatedSweep& sweep_;
  const BestPoints& best_;
  const double cell_;
  const bool named_;  ///< cells have room for names
  const std::size_t maps_across_;
  const std::vector<std::string> legend_;  ///< lines below the candidates
  SvgPage page_;
};

}  // namespace

std::string render_best_map(const SimulatedSweep& sweep, const BestPoints& best,
                            const std::string& title) {
  return BestMapPage(sweep, best, title).svg();
}

}  // namespace pipewright
