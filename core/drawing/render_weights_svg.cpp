// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "core/base/text.h"
#include "core/drawing/kind_colors.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/drawing/render_page.h"
#include "core/schedule/weights_used.h"

namespace pipewright {
namespace {

// Lengths are in pixels.
constexpr double kWeightsMargin = 24;
constexpr double kWeightsHeading = 84;
constexpr double kRow = 118;
constexpr double kLine = 16;          // height of a line of the table
constexpr double kWeightsNames = 84;  // width of the stages' names
constexpr double kRadius = 11;        // radius of a version's circle
constexpr double kWeightsLegend = 44;
constexpr std::array<double, 5> kColumns = {8, 74, 128, 186, 244};  // offsets in the table
constexpr double kTable = 280;
constexpr int kShade = 3;                  // index of a shade dark enough for text on paper
constexpr const char* kRelay = "#869c2c";  // the colour of relays, but as dark

/// Passes of one stage that compute with the same weights. They are drawn as one arrow.
struct Reading {
  std::vector<ActionKind> kinds;
  WeightKey key;
  bool of_forward = false;
  int applied_to = -1;

  int target() const { return key.version + key.ahead; }
  bool above() const {
    return kinds.front() == ActionKind::Forward || kinds.front() == ActionKind::Head;
  }
  /// The letters of the kinds: "F", "B, b".
  std::string name() const {
    std::vector<std::string> letters;
    for (const ActionKind kind : kinds) letters.emplace_back(facts_of(kind).letter);
    return join(letters, ", ");
  }
  const char* color() const {
    if (kinds == std::vector{ActionKind::BackwardInput}) return kRelay;
    return shade_of(above() ? kinds.front() : ActionKind::Backward, kShade).fill;
  }
};

/// The readings of each stage of replica 0, in the order of its worker.
std::vector<std::vector<Reading>> readings_of(const ProvedSchedule& proved, int minibatch) {
  std::vector<std::vector<Reading>> stages(static_cast<std::size_t>(proved.schedule.shape.stages));
  for (const PassWeights& pass : weights_used(proved, minibatch)) {
    if (pass.action.replica != 0) continue;
    if (pass.action.kind == ActionKind::Recompute)
      continue;  // reads what its forward or backward does
    Reading reading{.kinds = {pass.action.kind},
                    .key = pass.key,
                    .of_forward = pass.action.weights.source == Weights::Source::OfForward,
                    .applied_to = pass.applied_to};
    auto& readings = stages[static_cast<std::size_t>(pass.action.stage)];
    const auto same = std::find_if(readings.begin(), readings.end(), [&](const Reading& other) {
      return other.above() == reading.above() && other.key == reading.key &&
             other.of_forward == reading.of_forward && other.applied_to == reading.applied_to;
    });
    if (same == readings.end())
      readings.push_back(std::move(reading));
    else if (std::find(same->kinds.begin(), same->kinds.end(), pass.action.kind) ==
             same->kinds.end())
      same->kinds.push_back(pass.action.kind);
  }
  return stages;
}

class WeightsDrawing {
 public:
  WeightsDrawing(const ProvedSchedule& proved, int minibatch)
      : stages_(readings_of(proved, minibatch)), minibatch_(minibatch) {
    for (const auto& readings : stages_) {
      for (const Reading& reading : readings) {
        first_ = std::min({first_, reading.key.version, reading.target()});
        last_ = std::max({last_, reading.key.version, reading.target(), reading.applied_to + 1});
        predicts_ = predicts_ || reading.key.ahead != 0;
        reuses_ = reuses_ || reading.of_forward;
      }
      tallest_ = std::max(tallest_, kLine * static_cast<double>(readings.size()) + 24);
    }
    first_ = std::min(first_, last_);
    step_ = std::clamp(480.0 / std::max(1, last_ - first_), 64.0, 120.0);
    left_ = kWeightsMargin + kWeightsNames + kRadius + 8;
    table_ = x_of(last_) + kRadius + 34;
  }

  std::string svg(const std::string& title) {
    const double rows = tallest_ * static_cast<double>(stages_.size());
    const double width =
        std::max({table_ + kTable, left_ + 680, kWeightsMargin + text_width(title, 18)});
    SvgPage page(width + kWeightsMargin, kWeightsHeading + rows + kWeightsLegend, title);
    page.text(kWeightsMargin, 32, title, {.size = 18, .bold = true});
    page.text(
        kWeightsMargin, 49,
        concat("The weights used by mini-batch ", minibatch_,
               " (counted from 0). Circles are versions of a stage's weights: its updates so far."),
        {.color = palette::kQuiet});
    draw_table_head(page);
    for (int version = first_; version <= last_; ++version)
      page.line(x_of(version), kWeightsHeading + 4, x_of(version), kWeightsHeading + rows - 4,
                {.color = palette::kLane, .width = 2});
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) draw_stage(page, stage);
    draw_legend(page, kWeightsHeading + rows + 22);
    return std::move(page).svg();
  }

 private:
  double x_of(int version) const { return left_ + step_ * (version - first_); }
  double y_of(std::size_t stage) const {
    return kWeightsHeading + tallest_ * (static_cast<double>(stage) + 0.5);
  }

  void draw_stage(SvgPage& page, std::size_t stage) const {
    const double y = y_of(stage);
    const std::size_t depth = stages_.size() - 1 - stage;
    if (stage > 0)
      page.line(kWeightsMargin, y - tallest_ / 2, table_ + kTable, y - tallest_ / 2,
                {.color = palette::kRule});
    page.text(kWeightsMargin, y - 1, concat("stage ", stage), {.size = 13, .bold = true});
    page.text(kWeightsMargin, y + 14, concat("D = ", depth),
              {.size = 10.5, .color = palette::kQuiet});
    page.line(x_of(first_), y, x_of(last_), y, {.color = palette::kRule, .width = 1.5});
    for (const Reading& reading : stages_[stage])
      if (reading.applied_to >= 0)
        page.line(x_of(reading.applied_to) + kRadius, y, x_of(reading.applied_to + 1) - kRadius - 1,
                  y, {.color = palette::kUpdate, .width = 2.5, .arrow = true});
    for (int version = first_; version <= last_; ++version) draw_version(page, stage, version);
    for (const Reading& reading : stages_[stage]) draw_reading(page, y, reading);
    draw_numbers(page, stage);
  }

  void draw_version(SvgPage& page, std::size_t stage, int version) const {
    bool read = false, aimed = false, applied = false;
    for (const Reading& reading : stages_[stage]) {
      read = read || reading.key.version == version;
      aimed = aimed || reading.target() == version;
      applied = applied || reading.applied_to == version;
    }
    const char* color = applied ? palette::kUpdate : read || aimed ? palette::kInk : palette::kRule;
    page.circle(
        x_of(version), y_of(stage), kRadius, palette::kPaper,
        {.color = color, .width = applied ? 2.0 : 1.3, .dashed = aimed && !read && !applied});
    page.text(x_of(version), y_of(stage) + 4, std::to_string(version),
              {.color = read || aimed || applied ? palette::kInk : palette::kQuiet,
               .anchor = "middle",
               .bold = read});
  }

  /// Draws an arc to the predicted version, or a short arrow if the version is read as it is.
  void draw_reading(SvgPage& page, double y, const Reading& reading) const {
    const double side = reading.above() ? 1 : -1;
    const double edge = y - side * (kRadius + 2.5);
    const double x = x_of(reading.key.version);
    const LineStyle style{
        .color = reading.color(), .width = 2, .dashed = reading.of_forward, .arrow = true};
    double rise = 20, center = x;
    std::string name = reading.name();
    if (reading.key.ahead == 0) {
      page.line(x, edge - side * rise, x, edge, style);
    } else {
      rise = std::min(20.0 + 4 * std::abs(reading.key.ahead), 30.0);
      center = x_of(reading.target()) / 2 + x / 2;
      page.arc(x, x_of(reading.target()), edge, side * rise, style);
      name += concat(" ", reading.key.ahead > 0 ? "+" : "", signed_text(reading.key.ahead));
    }
    page.text(center, edge - side * (rise + 5) + (side > 0 ? 0 : 8), name,
              {.color = reading.color(), .anchor = "middle", .bold = true});
  }

  void draw_table_head(SvgPage& page) const {
    const std::array<const char*, 5> heads = {"pass", "reads", "stands for", "applied to",
                                              "staleness"};
    for (std::size_t column = 0; column < heads.size(); ++column)
      page.text(table_ + kColumns[column], kWeightsHeading - 8, heads[column],
                {.size = 10, .color = palette::kQuiet, .anchor = column == 0 ? "start" : "middle"});
  }

  void draw_numbers(SvgPage& page, std::size_t stage) const {
    const auto& readings = stages_[stage];
    double y = y_of(stage) - kLine * (static_cast<double>(readings.size()) - 1) / 2 + 4;
    for (const Reading& reading : readings) {
      const WeightKey& key = reading.key;
      const bool applied = reading.applied_to >= 0;
      const std::array<std::string, 5> cells = {
          reading.name(),
          key.ahead == 0 ? std::to_string(key.version)
                         : concat(key.version, key.ahead > 0 ? " + " : " − ", std::abs(key.ahead)),
          std::to_string(reading.target()), applied ? std::to_string(reading.applied_to) : "",
          applied ? signed_text(reading.applied_to - reading.target()) : ""};
      page.text(table_ + kColumns[0], y, cells[0],
                {.size = 12, .color = reading.color(), .bold = true});
      for (std::size_t column = 1; column < cells.size(); ++column)
        page.text(table_ + kColumns[column], y, cells[column], {.size = 12, .anchor = "middle"});
      y += kLine;
    }
  }

  void draw_legend(SvgPage& page, double y) const {
    double x = kWeightsMargin;
    auto entry = [&](const LineStyle& style, const std::string& text) {
      page.line(x, y - 4, x + 26, y - 4, style);
      page.text(x + 32, y, text, {.color = palette::kQuiet});
      x += 32 + text_width(text, 11) + 8;
    };
    const char* blue = shade_of(ActionKind::Forward, kShade).fill;
    const char* green = shade_of(ActionKind::Backward, kShade).fill;
    entry({.color = blue, .width = 2, .arrow = true},
          predicts_ ? "version read; F +s: predicted s steps ahead" : "version read");
    if (reuses_)
      entry({.color = green, .width = 2, .dashed = true, .arrow = true},
            "the very weights of the forward");
    entry({.color = palette::kUpdate, .width = 2.5, .arrow = true},
          "its gradient is applied here and makes the next version");
  }

  std::vector<std::vector<Reading>> stages_;
  int minibatch_;
  int first_ = std::numeric_limits<int>::max();  ///< first and last version drawn
  int last_ = 0;
  bool predicts_ = false;  ///< whether any pass reads predicted weights
  bool reuses_ = false;    ///< whether any backward reads those of its forward
  double tallest_ = kRow;
  double step_ = 0;  ///< distance between versions
  double left_ = 0;
  double table_ = 0;
};

}  // namespace

std::string render_weights_svg(const ProvedSchedule& proved, int minibatch,
                               const std::string& title) {
  return WeightsDrawing(proved, minibatch).svg(title);
}

}  // namespace pipewright
