// SPDX-License-Identifier: Apache-2.0
// A timeline to scale: unlike in the grid of slots, the width of a bar is its duration.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/drawing/kind_colors.h"
#include "core/drawing/render_labels.h"
#include "core/drawing/render_page.h"
#include "core/drawing/render_simulation.h"
#include "core/drawing/render_window.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

constexpr double kTimelineMargin = 24, kTimelineHeading = 62, kTimelineLane = 34, kTimelineGap = 6,
                 kTimelineAxis = 30, kTimelineLegend = 34, kTimelineNextHeading = 30;
constexpr double kTimelineNames = 90, kTimelineWidth = 1040;
constexpr double kThinnest = 0.6;  ///< px; thinner bars would be invisible

class Timeline {
 public:
  Timeline(const Schedule& schedule, const std::vector<TimelinePart>& parts,
           const std::string& title, double end, const Versions* versions)
      : schedule_(schedule),
        versions_(versions),
        parts_(parts),
        labels_(schedule),
        rows_(RenderRows::of_equal_actions(
            schedule,
            [&](std::size_t worker, std::size_t twin) { return at_the_same_times(worker, twin); })),
        end_(end),
        part_height_(kTimelineNextHeading +
                     static_cast<double>(rows_.size()) * (kTimelineLane + kTimelineGap)),
        bottom_(kTimelineHeading - kTimelineNextHeading +
                static_cast<double>(parts.size()) * part_height_),
        page_(2 * kTimelineMargin + kTimelineNames + kTimelineWidth,
              bottom_ + kTimelineAxis + kTimelineLegend, title) {
    page_.text(kTimelineMargin, 32, title, {.size = 18, .bold = true});
  }

  std::string svg() && {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const double top = kTimelineHeading + static_cast<double>(part) * part_height_;
      const std::string rest = rows_.rest();
      page_.text(kTimelineMargin, top - 13,
                 concat(parts_[part].heading, rest.empty() ? "" : "; ", rest),
                 {.color = palette::kQuiet});
      for (std::size_t row = 0; row < rows_.size(); ++row)
        draw_lane(row, parts_[part].spans[rows_.workers()[row]], top);
      for (const TimelineMark& mark : parts_[part].marks) draw_mark(mark, top);
    }
    if (end_ > 0) draw_axis();
    draw_legend();
    return std::move(page_).svg();
  }

 private:
  double x(double time) const {
    return kTimelineMargin + kTimelineNames + kTimelineWidth * std::min(time / end_, 1.0);
  }

  /// Whether two workers begin and end everything together, in every part.
  bool at_the_same_times(std::size_t worker, std::size_t twin) const {
    return std::ranges::all_of(
        parts_, [&](const TimelinePart& part) { return part.spans[worker] == part.spans[twin]; });
  }

  void draw_lane(std::size_t row, const std::vector<Span>& spans, double top) {
    const std::size_t w = rows_.workers()[row];
    const double y = top + static_cast<double>(row) * (kTimelineLane + kTimelineGap);
    page_.text(kTimelineMargin, y + 21, labels_.worker(w), {.size = 12.5});
    page_.box(kTimelineMargin + kTimelineNames, y, kTimelineWidth, kTimelineLane, palette::kLane,
              3);
    const auto& actions = schedule_.workers[w];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Span& span = spans[i];
      if (goes_on_beside(actions[i].kind)) continue;
      if (span.begin >= end_) break;
      const bool first = beside(w, i, spans), second = i > 0 && beside(w, i - 1, spans);
      draw_action(schedule_.workers[w][i], span, y + (second ? kTimelineLane / 2 : 0),
                  first || second ? kTimelineLane / 2 : kTimelineLane, weights_of(w, i));
    }
    for (std::size_t i = 0; i < actions.size(); ++i)  // along the lane's edges, over its passes
      if (goes_on_beside(actions[i].kind) && spans[i].begin < end_)
        draw_action(actions[i], spans[i],
                    facts_of(actions[i].kind).track == 1 ? y + kTimelineLane - 7 : y - 3, 10, "");
  }

  /// Whether the action ran beside the next one: a measured pair did not.
  bool beside(std::size_t w, std::size_t i, const std::vector<Span>& spans) const {
    return is_fused_pair(schedule_.workers[w], i) && spans[i + 1].begin < spans[i].end;
  }

  /// "; weights w2" of a pass, if they are known.
  std::string weights_of(std::size_t w, std::size_t i) const {
    if (versions_ == nullptr || !is_pass(schedule_.workers[w][i].kind)) return {};
    const WeightKey& key = versions_->workers[w][i].key;
    return concat("; weights ", weights_text(key.version, key.ahead));
  }

  void draw_action(const Action& action, const Span& span, double y, double height,
                   const std::string& weights) {
    const Shade shade = shade_of(action.kind, action.minibatch);
    const double left = x(span.begin), width = x(span.end) - left;
    kinds_.insert(action.kind);
    if (width <= 0) {
      page_.line(left, y - 2, left, y + height + 2, {.color = shade.fill, .width = 1});
      return;
    }
    const double gap = std::min(0.6, width / 8);
    page_.box(left + gap, y + 3, std::max(kThinnest, width - 2 * gap), height - 6, shade.fill,
              std::min(3.0, width / 4),
              concat(kind_name(action.kind), " of ", labels_.action(action), ", ",
                     time_text(span.begin), " to ", time_text(span.end), weights));
    const std::string name = labels_.action(action);
    if (!goes_on_beside(action.kind) && text_width(name, 10) < width - 4)
      page_.text(left + width / 2, y + height / 2 + 4, name,
                 {.size = 10, .color = shade.ink, .anchor = "middle"});
  }

  void draw_mark(const TimelineMark& mark, double top) {
    constexpr double kThickness = 6;
    const std::optional<std::size_t> row = rows_.row_of(mark.worker);
    if (mark.begin >= end_ || !row) return;
    marks_[mark.name] = mark.fill;
    const double lane = top + static_cast<double>(*row) * (kTimelineLane + kTimelineGap);
    const double left = x(mark.begin), width = x(mark.end) - left;
    const bool inside = mark.below == 0;
    const double y = inside ? lane + (kTimelineLane - kThickness) / 2
                            : lane + kTimelineLane + (mark.below - 1) * kTimelineGap / 2;
    page_.box(left, y, std::max(kThinnest, width), inside ? kThickness : kTimelineGap / 2 - 0.5,
              mark.fill, 0, mark.tooltip);
  }

  void draw_axis() {
    const double step = round_step(end_, 10);
    for (int tick = 0; tick * step <= end_ * (1 + 1e-9); ++tick) {
      const double at = x(tick * step);
      page_.line(at, bottom_ - 2, at, bottom_ + 4, {.color = palette::kQuiet});
      page_.text(at, bottom_ + 16, tick == 0 ? "0" : time_text(tick * step),
                 {.size = 10, .color = palette::kQuiet, .anchor = "middle"});
    }
  }

  void draw_legend() {
    double at = kTimelineMargin + kTimelineNames;
    const auto entry = [&](const std::string& name, const char* fill) {
      page_.box(at, bottom_ + kTimelineAxis + 4, 14, 12, fill);
      page_.text(at + 20, bottom_ + kTimelineAxis + 14, name, {.color = palette::kQuiet});
      at += text_width(name, 11) + 38;
    };
    for (const ActionKind kind : kinds_) entry(kind_name(kind), shade_of(kind, 2).fill);
    for (const auto& [name, fill] : marks_) entry(name, fill);
  }

  const Schedule& schedule_;
  const Versions* const versions_;
  const std::vector<TimelinePart>& parts_;
  const RenderLabels labels_;
  const RenderRows rows_;
  const double end_;
  const double part_height_;
  const double bottom_;
  SvgPage page_;
  std::set<ActionKind> kinds_;
  std::map<std::string, const char*> marks_;  ///< name → colour
};

/// The messages that take at least a pixel, those to earlier workers below those to later ones.
std::vector<TimelineMark> transfers_of(const Simulation& simulation, double until) {
  std::vector<TimelineMark> marks;
  for (const LinkReport& link : simulation.links)
    for (const SentMessage& each : link.transfers)
      if (each.begin < until && kTimelineWidth * (each.arrived - each.begin) >= until)
        marks.push_back(
            {.worker = as_size(link.from),
             .begin = each.begin,
             .end = each.arrived,
             .fill = link.from < link.to ? "#4f7fb5" : "#9a6fb0",
             .name = link.from < link.to ? "sent to a later worker" : "sent to an earlier worker",
             .tooltip = concat(bytes_text(each.bytes), " to worker ", link.to, ", ",
                               time_text(each.begin), " to ", time_text(each.arrived)),
             .below = link.from < link.to ? 1 : 2});
  return marks;
}

}  // namespace

std::string render_timeline_svg(const Schedule& schedule, const Simulation& simulation,
                                const std::string& title, double end) {
  const double until = end > 0 ? std::min(end, simulation.makespan) : simulation.makespan;
  const std::string heading =
      concat(time_text(simulation.makespan), "; idle ", std::lround(100 * simulation.bubble), " %",
             until < simulation.makespan ? concat("; drawn: until ", time_text(until)) : "");
  return render_timelines_svg(
      schedule, {{heading, simulation.spans, transfers_of(simulation, until)}}, title, until);
}

std::string render_timelines_svg(const Schedule& schedule, const std::vector<TimelinePart>& parts,
                                 const std::string& title, double end, const Versions* versions) {
  return Timeline(schedule, parts, title, end, versions).svg();
}

}  // namespace pipewright
