// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/kind_colors.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/drawing/render_window.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// One column of one line: a character and its ANSI colour (0: the terminal's own).
struct Glyph {
  std::string text = " ";
  int color = 0;
};
using GlyphLine = std::vector<Glyph>;

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

/// A slot takes as many columns as the longest label, and one before it for the boundary with the
/// slot before. On boundaries are the updates, which take no time, and the marks of the culprit.
/// Throws Error{Data} with lines and bytes if it does not fit into memory.
class RenderGrid {
 public:
  RenderGrid(const Schedule& schedule, const RenderLabels& labels, const RenderOptions& options)
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

  const GlyphLine& header() const { return header_; }
  const std::vector<GlyphLine>& workers() const { return lines_; }
  /// Columns at which a line may be cut, ascending; the last one is its length.
  const std::vector<int>& cuts() const { return cuts_; }

 private:
  /// The columns [begin, end) of an action's label.
  struct Cell {
    int begin = 0;
    int end = 0;
    bool visible = false;
    bool boundary = false;  ///< the action takes no time: a sign at `begin`, no label
  };

  void check_size() const {
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

  bool is_culprit(std::size_t worker, std::size_t position) const {
    return culprit_ && as_size(culprit_->first) == worker && as_size(culprit_->second) == position;
  }

  bool is_drawn(std::size_t worker, std::size_t position) const {
    const int start = times_.start[worker][position];
    const int slots = slots_of(schedule_.workers[worker][position].kind);
    if (start == kNeverStarts) return false;
    if (slots == 0) return window_.from <= start && start <= window_.to;
    return start < window_.to && start + slots > window_.from;
  }

  void measure() {
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

  /// The column of the boundary before `slot`, for actions that end there and for actions that
  /// begin

  /// there. The two differ only where a culprit that takes no time stands between them.

  int end_of(int slot) const {
    return (slot - window_.from) * cell_ + (slot > widened_at_ ? widened_by_ : 0);
  }

  int begin_of(int slot) const {
    return (slot - window_.from) * cell_ + (slot >= widened_at_ ? widened_by_ : 0);
  }

  /// The first actions of a worker that can never start, and the culprit if it is one of them.

  std::vector<std::size_t> never_of(std::size_t worker) const {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < times_.start[worker].size(); ++i)
      if (times_.start[worker][i] == kNeverStarts &&
          (positions.size() < kNeverMost || is_culprit(worker, i)))
        positions.push_back(i);
    return positions;
  }

  Cell cell_of(std::size_t worker, std::size_t position) const {
    const Action& action = schedule_.workers[worker][position];
    const int start = times_.start[worker][position];
    const int length = static_cast<int>(labels_.action(action).size());
    if (start == kNeverStarts) {
      const auto& never = never_[worker];
      const auto at = std::find(never.begin(), never.end(), position);
      const int begin =
          begin_of(window_.to) + (1 + static_cast<int>(at - never.begin())) * cell_ + 1;
      return {begin, begin + length, at != never.end()};
    }
    const bool visible = is_drawn(worker, position);
    const int slots = slots_of(action.kind);
    if (slots > 0) return {begin_of(start) + 1, end_of(start + slots), visible};
    if (is_culprit(worker, position))
      return {end_of(start) + 1, end_of(start) + 1 + length, visible};
    return {end_of(start), end_of(start) + 1, visible, true};
  }

  void draw_header() {
    const int columns =
        begin_of(window_.to) + 1 + (never_most_ > 0 ? cell_ * (never_most_ + 1) : 0);
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

  GlyphLine line_of(std::size_t worker) const {
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

  const Schedule& schedule_;
  const RenderLabels& labels_;
  const SlotTimes times_;
  const RenderWindow window_;
  const std::optional<ActionPlace> culprit_;
  int cell_ = 0;         ///< columns per slot, its boundary included
  int widened_at_ = -1;  ///< slot before which a culprit without duration gets columns
  int widened_by_ = 0;
  std::vector<std::vector<std::size_t>> never_;  ///< per worker: the actions under `?`
  int never_most_ = 0;
  GlyphLine header_;
  std::vector<GlyphLine> lines_;
  std::vector<int> cuts_;
};

std::string colored(const std::string& text, int color) {
  return color == 0 ? text : concat("\033[", color, "m", text, "\033[0m");
}

/// A line of text: its name, then the columns [begin, end), without blanks at the end.
std::string line_text(std::string line, std::size_t margin, const GlyphLine& glyphs, int begin,
                      int end, bool color) {
  line.resize(margin, ' ');
  while (end > begin && glyphs[as_size(end - 1)].text == " ") --end;
  for (int column = begin; column < end;) {
    const int run_color = glyphs[as_size(column)].color;
    std::string run;
    for (; column < end && glyphs[as_size(column)].color == run_color; ++column)
      run += glyphs[as_size(column)].text;
    line += color ? colored(run, run_color) : run;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + '\n';
}

/// The last cut that leaves at most `room` columns after `begin`; the first one after `begin` if
/// none does.
int block_end(const std::vector<int>& cuts, int begin, int room) {
  int end = 0;
  for (const int cut : cuts)
    if (cut > begin && (end == 0 || cut - begin <= room)) end = cut;
  return end;
}

/// The meaning of the signs that occur, and what is not drawn.
std::string legend(const Schedule& schedule, const RenderOptions& options) {
  std::set<ActionKind> kinds;
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) kinds.insert(action.kind);
  std::vector<std::string> parts;
  for (const ActionKind kind : kinds) {
    const bool half =
        kind == ActionKind::BackwardInput && kinds.contains(ActionKind::BackwardWeight);
    const std::string words = half ? "b input gradient" : std::string(facts_of(kind).legend);
    parts.push_back(options.color ? colored(words, terminal_color_of(kind)) : words);
    if (kind != ActionKind::Update) continue;
    if (std::ranges::any_of(kinds, goes_on_beside))
      parts.push_back("# several of these");
    else if (kinds.contains(ActionKind::Reduce))
      parts.push_back("# reduce and update");
  }
  if (any_action(schedule, [](const Action& action) { return action.with_next; }))
    parts.push_back("& beside each other");
  parts.push_back(". idle");
  const int minibatches = schedule.shape.minibatches;
  if (options.minibatches > 0 && minibatches > options.minibatches)
    parts.push_back(concat("(drawn: ", options.minibatches, " of ", minibatches, " mini-batches)"));
  return join(parts, "   ") + '\n';
}

bool same_text(const GlyphLine& a, const GlyphLine& b) {
  return std::ranges::equal(a, b, {}, &Glyph::text, &Glyph::text);
}

}  // namespace

std::string render_text(const Schedule& schedule, const RenderOptions& options) {
  const RenderLabels labels(schedule);
  const RenderGrid grid(schedule, labels, options);
  std::vector<std::string> names;
  std::size_t margin = 4;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    std::string name = labels.worker(worker);
    if (const std::string stages = labels.stages(worker); !labels.plain() && !stages.empty())
      name += concat(" (", stages, ")");
    margin = std::max(margin, name.size());
    names.push_back(std::move(name));
  }
  margin += 1;
  const RenderRows rows(schedule, [&](std::size_t worker, std::size_t twin) {
    return options.culprit == nullptr && same_text(grid.workers()[worker], grid.workers()[twin]);
  });
  const int length = grid.cuts().back();
  const int room = options.width > 0 ? options.width - static_cast<int>(margin) : length;
  std::string out;
  for (int begin = 0; begin < length;) {
    const int end = block_end(grid.cuts(), begin, room);
    if (begin > 0) out += '\n';
    out += line_text("slot", margin, grid.header(), begin, end, options.color);
    for (const std::size_t worker : rows.workers())
      out += line_text(names[worker], margin, grid.workers()[worker], begin, end, options.color);
    begin = end;
  }
  if (const std::string rest = rows.rest(); !rest.empty()) out += concat("… ", rest, "\n");
  return out + legend(schedule, options);
}

ProvedSchedule prove_for_eyes(Schedule&& schedule) {
  try {
    return prove(std::move(schedule));
  } catch (const InvalidSchedule& invalid) {
    const ActionPlace culprit = invalid.culprit();
    const RenderOptions options{
        .width = 120, .minibatches = 8, .culprit = culprit == kNowhere ? nullptr : &culprit};
    std::string drawing;
    try {
      drawing = concat("\n", render_text(schedule, options));
    } catch (const Error&) {  // no memory holds it
    }
    throw Error(ErrorKind::Schedule, concat(invalid.message(), drawing), invalid.where());
  }
}

}  // namespace pipewright
