// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_grid.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/drawing/kind_colors.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

constexpr int kCulpritColor = 31;       // red
constexpr std::size_t kNeverMost = 12;  // actions of a worker shown under `?`

void put(GlyphLine& line, int column, std::string text, int color) {
  if (column >= 0 && as_size(column) < line.size())
    line[as_size(column)] = {std::move(text), color};
}

/// Puts an ASCII label into a line, one character per column.
void put_label(GlyphLine& line, int column, const std::string& label, int color) {
  for (const char c : label) put(line, column++, {c}, color);
}

}  // namespace

RenderGrid::RenderGrid(const Schedule& schedule, const RenderLabels& labels,
                       const RenderOptions& options)
    : schedule_(schedule),
      labels_(labels),
      times_(slot_times(schedule)),
      window_(render_window(schedule, times_, options.minibatches, options.culprit)),
      culprit_(options.culprit != nullptr && exists(schedule, *options.culprit)
                   ? std::optional(*options.culprit)
                   : std::nullopt) {
  measure();
  draw_header();
  check_size();
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker)
    lines_.push_back(line_of(worker));
}

void RenderGrid::check_size() const {
  constexpr double kBytesOfGlyph = sizeof(Glyph) + 4;  // of the line, and of the text made of it
  constexpr double kAlwaysThere = 1 << 26;             // bytes; fewer always fit
  const std::size_t lines = schedule_.workers.size();
  const double bytes =
      kBytesOfGlyph * static_cast<double>(lines) * static_cast<double>(header_.size());
  if (bytes < kAlwaysThere) return;
  const MemoryLimit limit = memory_limit();
  if (bytes <= limit.bytes) return;
  throw Error(ErrorKind::Data,
              concat("the drawing has ", counted(lines, "line"), " of ",
                     counted(header_.size(), "column"), ", which take ", bytes_text(bytes), "; ",
                     limit.text, "; choose fewer mini-batches, micro-batches or stages"));
}

bool RenderGrid::is_culprit(std::size_t worker, std::size_t position) const {
  return culprit_ && as_size(culprit_->first) == worker && as_size(culprit_->second) == position;
}

bool RenderGrid::is_drawn(std::size_t worker, std::size_t position) const {
  const int start = times_.start[worker][position];
  const int slots = slots_of(schedule_.workers[worker][position].kind);
  if (start == kNeverStarts) return false;
  if (slots == 0) return window_.from <= start && start <= window_.to;
  return start < window_.to && start + slots > window_.from;
}

void RenderGrid::measure() {
  std::size_t longest = 2;
  for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
    never_.push_back(never_of(worker));
    never_most_ = std::max(never_most_, static_cast<int>(never_.back().size()));
    for (const std::size_t i : never_.back())
      longest = std::max(longest, labels_.action(schedule_.workers[worker][i]).size());
    for (std::size_t i = 0; i < schedule_.workers[worker].size(); ++i) {
      const Action& action = schedule_.workers[worker][i];
      if (!is_drawn(worker, i)) continue;
      const std::size_t length = labels_.action(action).size();
      if (slots_of(action.kind) > 0) longest = std::max(longest, length);
      if (slots_of(action.kind) > 0 || !is_culprit(worker, i)) continue;
      widened_at_ = times_.start[worker][i];
      widened_by_ = static_cast<int>(length) + 2;
    }
  }
  cell_ = static_cast<int>(longest) + 1;
}

/// The column of the boundary before `slot`, for actions that end there and for actions that begin
/// there. The two differ only where a culprit that takes no time stands between them.
int RenderGrid::end_of(int slot) const {
  return (slot - window_.from) * cell_ + (slot > widened_at_ ? widened_by_ : 0);
}
int RenderGrid::begin_of(int slot) const {
  return (slot - window_.from) * cell_ + (slot >= widened_at_ ? widened_by_ : 0);
}

/// The first actions of a worker that can never start, and the culprit if it is one of them.
std::vector<std::size_t> RenderGrid::never_of(std::size_t worker) const {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < times_.start[worker].size(); ++i)
    if (times_.start[worker][i] == kNeverStarts &&
        (positions.size() < kNeverMost || is_culprit(worker, i)))
      positions.push_back(i);
  return positions;
}

RenderGrid::Cell RenderGrid::cell_of(std::size_t worker, std::size_t position) const {
  const Action& action = schedule_.workers[worker][position];
  const int start = times_.start[worker][position];
  const int length = static_cast<int>(labels_.action(action).size());
  if (start == kNeverStarts) {
    const auto& never = never_[worker];
    const auto at = std::find(never.begin(), never.end(), position);
    const int begin = begin_of(window_.to) + (1 + static_cast<int>(at - never.begin())) * cell_ + 1;
    return {begin, begin + length, at != never.end()};
  }
  const bool visible = is_drawn(worker, position);
  const int slots = slots_of(action.kind);
  if (slots > 0) return {begin_of(start) + 1, end_of(start + slots), visible};
  if (is_culprit(worker, position)) return {end_of(start) + 1, end_of(start) + 1 + length, visible};
  return {end_of(start), end_of(start) + 1, visible, true};
}

void RenderGrid::draw_header() {
  const int columns = begin_of(window_.to) + 1 + (never_most_ > 0 ? cell_ * (never_most_ + 1) : 0);
  header_.resize(as_size(columns));
  for (int slot = window_.from; slot < window_.to; ++slot) {
    if (slot > window_.from) cuts_.push_back(end_of(slot) + 1);
    if (slot % 5 == 0)
      put_label(header_, begin_of(slot) + 1, std::to_string(slot), kQuietTerminalColor);
  }
  for (int never = 0; never < never_most_; ++never) {
    const int begin = begin_of(window_.to) + (1 + never) * cell_;
    cuts_.push_back(begin);
    put(header_, begin + 1, "?", kQuietTerminalColor);
  }
  cuts_.push_back(columns);
}

GlyphLine RenderGrid::line_of(std::size_t worker) const {
  GlyphLine line(header_.size());
  for (int slot = window_.from; slot < window_.to; ++slot)
    put(line, begin_of(slot) + 1, ".", kQuietTerminalColor);
  const auto& actions = schedule_.workers[worker];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Cell cell = cell_of(worker, i);
    if (!cell.visible) continue;
    const int color = is_culprit(worker, i) ? kCulpritColor : terminal_color_of(actions[i].kind);
    if (cell.boundary) {
      const bool alone = line[as_size(cell.begin)].text == " ";
      const std::string_view legend = facts_of(actions[i].kind).legend;  // "| update"
      put(line, cell.begin, alone ? std::string(legend.substr(0, 1)) : "#", color);
      continue;
    }
    std::string label = labels_.action(actions[i]);
    label.resize(as_size(cell.end - cell.begin), slots_of(actions[i].kind) > 1 ? '-' : ' ');
    put_label(line, cell.begin, label, color);
    if (is_fused_pair(actions, i)) put(line, cell.end, "&", color);
  }
  if (culprit_ && as_size(culprit_->first) == worker) {
    const Cell cell = cell_of(worker, as_size(culprit_->second));
    put(line, cell.begin - 1, "▶", kCulpritColor);
    put(line, cell.end, "◀", kCulpritColor);
  }
  return line;
}

}  // namespace pipewright
