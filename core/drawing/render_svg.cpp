// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/kind_colors.h"
#include "core/drawing/render.h"
#include "core/drawing/render_layout.h"
#include "core/drawing/render_page.h"

namespace pipewright {
namespace {

using namespace sizes;

constexpr double kColumn = 30;  // width of a column of the table at the right

/// "4 stages on 4 workers, 8 mini-batches of 4 micro-batches; 45 slots, workers 73 % busy"
std::string summary(const GridLayout& layout) {
  const Schedule& schedule = layout.schedule;
  const PipelineShape& shape = schedule.shape;
  const int workers = static_cast<int>(schedule.workers.size());
  const int makespan = layout.times.makespan;
  int busy = 0;
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) busy += slots_of(action.kind);
  std::string text = concat(counted(shape.stages, "stage"), " on ", counted(workers, "worker"),
                            shape.replicas > 1 ? concat(" (", shape.replicas, " replicas)") : "",
                            ", ", counted(shape.minibatches, "mini-batch"));
  if (shape.microbatches > 1) text += concat(" of ", microbatches_text(shape));
  text += concat("; ", counted(makespan, "slot"));
  if (workers * makespan > 0)
    text += concat(", workers ", (100 * busy + workers * makespan / 2) / (workers * makespan),
                   " % busy");
  if (const std::string rest = layout.rows.rest(); !rest.empty()) text += "; " + rest;
  if (layout.cut()) text += concat("; drawn: the first ", layout.window.to, " slots");
  return text;
}

std::string tooltip_of(const GridLayout& layout, std::size_t worker, std::size_t position) {
  const Action& action = layout.schedule.workers[worker][position];
  const WeightKey& key = layout.versions.workers[worker][position].key;
  const int start = layout.times.start[worker][position];
  std::string text = concat(kind_name(action.kind), " of mini-batch ", action.minibatch);
  const PipelineShape& shape = layout.schedule.shape;
  if (shape.microbatches > 1) text += ", " + microbatch_text(action, shape);
  text += concat(", stage ", action.stage);
  if (is_part_of_backward(action.kind)) text += concat(", loss ", action.loss);
  return concat(text, "; weights ", weights_text(key.version, key.ahead), "; slots ", start, "–",
                start + slots_of(action.kind));
}

/// How far a mark stands beside the boundary of its slot, so that several are seen.
double mark_offset(ActionKind kind) {
  return 2.6 * (kind == ActionKind::Reduce ? -1 : facts_of(kind).track);
}

void draw_action(SvgPage& page, const GridLayout& layout, const LayoutBlock& block, std::size_t row,
                 std::size_t position) {
  const std::size_t worker = layout.rows.workers()[row];
  const Action& action = layout.schedule.workers[worker][position];
  const int start = layout.times.start[worker][position], slots = slots_of(action.kind);
  const double x = layout.x_of(block, std::max(start, block.window.from));
  const double y = layout.y_of(block, row);
  const Shade shade = shade_of(action.kind, action.minibatch);
  if (slots == 0) {
    const double tick = x + mark_offset(action.kind);
    page.line(tick, y - 2.5, tick, y + kLane + 2.5, {.color = shade.fill, .width = 2});
    return;
  }
  const double width = layout.x_of(block, std::min(start + slots, block.window.to)) - x;
  page.box(x + 1, y + 3, width - 2, kLane - 6, shade.fill, 4, tooltip_of(layout, worker, position));
  const std::string note = layout.note_of(worker, position);
  page.text(x + width / 2, y + (note.empty() ? 24.5 : 19.5), layout.number_of(action),
            {.size = kNumber, .color = shade.ink, .anchor = "middle", .bold = true});
  if (!note.empty())
    page.text(x + width / 2, y + 31, note, {.size = kNote, .color = shade.ink, .anchor = "middle"});
  const bool joined = is_fused_pair(layout.schedule.workers[worker], position);
  if (joined && start + slots < block.window.to) {
    const double joint = layout.x_of(block, start + slots);
    page.box(joint - 4, y + kLane / 2 - 3, 8, 6, shade.fill, 0, "a fused pair");
  }
}

void draw_lane(SvgPage& page, const GridLayout& layout, const LayoutBlock& block, std::size_t row) {
  const std::size_t worker = layout.rows.workers()[row];
  const double y = layout.y_of(block, row), end = layout.x_of(block, block.window.to);
  const std::string stages = layout.labels.plain() ? "" : layout.labels.stages(worker);
  page.text(kMargin, y + (stages.empty() ? 24 : 18), layout.labels.worker(worker), {.size = kName});
  page.text(kMargin, y + 32, stages, {.size = kSmall, .color = palette::kQuiet});
  page.box(layout.left, y, end - layout.left, kLane, palette::kLane, 4);
  for (int slot = block.window.from + 1; slot < block.window.to; ++slot) {
    const double x = layout.x_of(block, slot);
    if (slot % 5 == 0) page.line(x, y, x, y + kLane, {.color = palette::kPaper});
  }
  for (std::size_t i = 0; i < layout.schedule.workers[worker].size(); ++i)
    if (layout.is_drawn(block.window, worker, i)) draw_action(page, layout, block, row, i);
  if (layout.cut() && block.window.to == layout.window.to)
    page.text(end + 5, y + 24, "…", {.size = 14, .color = palette::kQuiet});
}

void draw_axis(SvgPage& page, const GridLayout& layout, const LayoutBlock& block) {
  const double y = layout.y_of(block, layout.rows.size());
  for (int slot = block.window.from; slot <= block.window.to; ++slot) {
    if (slot % 5 != 0) continue;
    const double x = layout.x_of(block, slot);
    page.line(x, y - 3, x, y + 2, {.color = palette::kQuiet});
    page.text(x, y + 14, std::to_string(slot),
              {.size = kSmall, .color = palette::kQuiet, .anchor = "middle"});
  }
  page.text(layout.left - 20, y + 14, "slot",
            {.size = kSmall, .color = palette::kQuiet, .anchor = "end"});
}

/// The legend of the notes in the boxes.
std::string note_legend(const GridLayout& layout) {
  const Schedule& schedule = layout.schedule;
  switch (layout.note()) {
    case GridLayout::Note::None: return {};
    case GridLayout::Note::Places: {
      std::vector<std::string> parts;
      if (layout.labels.several_stages()) parts.push_back("s2: stage 2");
      if (!schedule.auxiliary.empty()) parts.push_back("←3: from the loss of stage 3");
      return join(parts, ", ");
    }
    case GridLayout::Note::Versions: break;
  }
  for (const auto& worker : layout.versions.workers)
    for (const ActionWeights& weights : worker)
      if (weights.key.ahead != 0)
        return "w2+1: reads version 2 of the weights, predicted 1 step ahead";
  return "w2: reads version 2 of the weights";
}

void draw_legend(SvgPage& page, const GridLayout& layout, double y) {
  std::set<ActionKind> kinds;
  for (const auto& worker : layout.schedule.workers)
    for (const Action& action : worker) kinds.insert(action.kind);
  double x = layout.left;
  for (const ActionKind kind : kinds) {
    const Shade shade = shade_of(kind, 2);
    const bool tick = slots_of(kind) == 0;
    if (tick)
      page.line(x + 4, y - 11, x + 4, y + 3, {.color = shade.fill, .width = 2});
    else
      page.box(x, y - 10, 14, 12, shade.fill);
    x += tick ? 11 : 20;
    const bool relay =
        kind == ActionKind::BackwardInput && !kinds.contains(ActionKind::BackwardWeight);
    const std::string name = relay ? "relay" : kind_name(kind);
    page.text(x, y, name, {.color = palette::kQuiet});
    x += text_width(name, 11) + 18;
  }
  if (any_action(layout.schedule, [](const Action& action) { return action.with_next; })) {
    const std::string name = "joined: beside each other";
    page.text(x, y, name, {.color = palette::kQuiet});
    x += text_width(name, 11) + 18;
  }
  page.text(x, y, note_legend(layout), {.color = palette::kQuiet});
}

/// Draws staleness and copies of each stage, beside its worker in the first block.
void draw_table(SvgPage& page, const GridLayout& layout, double x) {
  const TextStyle head{.size = kSmall, .color = palette::kQuiet, .anchor = "middle"};
  const std::array<double, 4> centers = {x + 15, x + 45, x + 75, x + 109};
  page.text((centers[1] + centers[2]) / 2, kHeading - 18, "staleness", head);
  const std::array<const char*, 4> heads = {"stage", "F", "B", "copies"};
  for (std::size_t column = 0; column < heads.size(); ++column)
    page.text(centers[column], kHeading - 6, heads[column], head);
  for (std::size_t row = 0; row < layout.rows.size(); ++row) {
    std::set<std::pair<int, int>> places;
    for (const Action& action : layout.schedule.workers[layout.rows.workers()[row]])
      places.insert({action.stage, action.replica});
    const double step = kLane / static_cast<double>(std::max<std::size_t>(1, places.size()));
    const double size = std::min(12.0, step);
    double y = layout.y_of(layout.blocks.front(), row) + (step + size * 0.7) / 2;
    for (const auto& [stage, replica] : places) {
      const StageVersions& versions = layout.versions.stages[as_size(stage)][as_size(replica)];
      const std::array<int, 4> cells = {stage, versions.forward_staleness,
                                        versions.backward_staleness, versions.copies};
      for (std::size_t column = 0; column < cells.size(); ++column)
        page.text(centers[column], y, signed_text(cells[column]),
                  {.size = size, .anchor = "middle"});
      y += step;
    }
  }
}

}  // namespace

std::string render_svg(const ProvedSchedule& proved, const std::string& title, int minibatches) {
  const Schedule& schedule = proved.schedule;
  const GridLayout layout(proved, minibatches);
  const bool dots = layout.cut() && layout.blocks.size() == 1;
  const double table = layout.right + (dots ? 22 : 8);
  const double table_width = schedule.shape.training ? 4 * kColumn + 10 : 0;
  const double blocks = static_cast<double>(layout.blocks.size()) * layout.block_height();
  const double width =
      std::max({table + table_width, layout.left + 360, kMargin + text_width(title, 18),
                kMargin + text_width(summary(layout), 11)});
  SvgPage page(width + kMargin, kHeading + blocks + kLegend, title);
  page.text(kMargin, 32, title, {.size = 18, .bold = true});
  page.text(kMargin, 49, summary(layout), {.color = palette::kQuiet});
  for (const LayoutBlock& block : layout.blocks) {
    for (std::size_t row = 0; row < layout.rows.size(); ++row) draw_lane(page, layout, block, row);
    draw_axis(page, layout, block);
  }
  draw_legend(page, layout, kHeading + blocks + 12);
  if (schedule.shape.training) draw_table(page, layout, table);
  return std::move(page).svg();
}

}  // namespace pipewright
