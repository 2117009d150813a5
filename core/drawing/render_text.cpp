// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/kind_colors.h"
#include "core/drawing/render.h"
#include "core/drawing/render_grid.h"
#include "core/drawing/render_rows.h"

namespace pipewright {
namespace {

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

}  // namespace pipewright
