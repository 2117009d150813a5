// SPDX-License-Identifier: Apache-2.0
// Strips of what probes measured per stage over the training: the gap between the weights that a
// gradient was computed with and those it changed, what codecs lose on edges, and sharpness.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "core/page/sections.h"
#include "core/records/probe_log.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostBins = 80, kMostStrips = 60;
constexpr double kStripWidth = 640, kStripHeight = 34, kStripNames = 80, kStripEnd = 96;

struct StripKind {
  const char* probe;
  const char* quantity;
  const char* what;
};

constexpr std::array kStripKinds{
    StripKind{"weight_gap", "forward_relative",
              "Weight gap of the forward, in updates: how far its weights were from those that the "
              "gradient changed"},
    StripKind{"weight_gap", "backward_relative", "Weight gap of the backward, in updates"},
    StripKind{"prediction_error", "relative",
              "Error of predicted weights, as a part of that without a prediction"},
    StripKind{"edge_error", "activation",
              "What the codec loses of activations, edge before the stage"},
    StripKind{"edge_error", "gradient", "What the codec loses of gradients, edge behind the stage"},
    StripKind{"sharpness", "largest",
              "Sharpness: the largest eigenvalue of the stage’s Hessian, which the edge of "
              "stability limits"}};

struct Bin {
  double sum = 0;
  int count = 0, first_epoch = 0, first = 0, last_epoch = 0, last = 0;
};

/// The measurements of a quantity in one run: by stage, binned over time.
struct Strips {
  std::string run;
  std::map<int, std::vector<Bin>> stages;
  double largest = 0;
  std::size_t index = 0;  ///< of the run
};

using Moment = std::pair<int, int>;  // epoch, mini-batch

Strips strips_of(const std::string& run, const std::vector<ProbeValue>& log,
                 const StripKind& kind) {
  const auto fits = [&](const ProbeValue& each) {
    return each.stage && each.probe == kind.probe && each.quantity == kind.quantity &&
           std::isfinite(each.value);
  };
  std::set<Moment> moments;
  for (const ProbeValue& each : log)
    if (fits(each)) moments.insert({each.epoch, each.minibatch});
  const std::vector<Moment> order(moments.begin(), moments.end());
  const std::size_t bins = std::min(kMostBins, order.size());
  Strips strips{.run = run, .stages = {}};
  for (const ProbeValue& each : log) {
    if (!fits(each)) continue;
    const Moment moment{each.epoch, each.minibatch};
    const auto place =
        static_cast<std::size_t>(std::ranges::lower_bound(order, moment) - order.begin());
    std::vector<Bin>& stage = strips.stages[*each.stage];
    stage.resize(bins);
    Bin& bin = stage[place * bins / order.size()];
    if (bin.count == 0) std::tie(bin.first_epoch, bin.first) = moment;
    std::tie(bin.last_epoch, bin.last) = moment;
    bin.sum += each.value;
    ++bin.count;
  }
  for (const auto& [stage, all] : strips.stages)
    for (const Bin& bin : all)
      if (bin.count > 0) strips.largest = std::max(strips.largest, bin.sum / bin.count);
  return strips;
}

std::string when(const Bin& bin) {
  const std::string first = concat("epoch ", bin.first_epoch + 1, ", mini-batch ", bin.first);
  if (bin.first_epoch == bin.last_epoch && bin.first == bin.last) return first;
  return concat(first, " to epoch ", bin.last_epoch + 1, ", mini-batch ", bin.last);
}

double strip_mean(const std::vector<Bin>& bins) {
  double sum = 0;
  int count = 0;
  for (const Bin& bin : bins) {
    sum += bin.sum;
    count += bin.count;
  }
  return sum / std::max(1, count);
}

std::string short_number(double number) {
  return number_text(std::round(100 * number) / 100);
}

/// A bar for each bin, whose height is the value, so that no colour is needed to read it.
std::string strip_bars(int stage, const std::vector<Bin>& bins, double floor, double per_unit) {
  const double width = kStripWidth / static_cast<double>(bins.size());
  std::string svg;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i].count == 0) continue;
    const double value = bins[i].sum / bins[i].count;
    const double rise = std::max(0.5, per_unit * std::max(0., value));
    svg += concat("<rect class=\"bar\" x=\"",
                  short_number(kStripNames + width * static_cast<double>(i)), "\" y=\"",
                  short_number(floor - rise), "\" width=\"", short_number(std::max(0.8, width - 1)),
                  "\" height=\"", short_number(rise), "\"><title>stage ", stage, ", ",
                  when(bins[i]), ": ", rounded_text(value), "</title></rect>");
  }
  return svg;
}

/// The limit that a stage's values are held against: a dashed line, if it is within the lane.
std::string strip_limit(double limit, double floor, double per_unit) {
  if (!std::isfinite(limit)) return {};
  const double rise = per_unit * limit;
  std::string svg = concat("<text x=\"", kStripNames + kStripWidth + 8, "\" y=\"", floor,
                           "\">limit ", rounded_text(limit, 3), "</text>");
  if (rise > 0 && rise <= kStripHeight - 4)
    svg += concat("<path class=\"limit\" d=\"M", kStripNames, " ", short_number(floor - rise), "h",
                  kStripWidth, "\"/>");
  return svg;
}

/// A lane of bars for each stage. `limits` may have a number for each.
std::string strip_svg(const Strips& strips, double largest, const char* what,
                      const std::vector<double>& limits) {
  std::string lanes;
  double top = 0;
  const double per_unit = largest > 0 ? (kStripHeight - 8) / largest : 0;
  for (const auto& [stage, bins] : strips.stages) {
    const double floor = top + kStripHeight - 3;
    const bool limited = stage >= 0 && static_cast<std::size_t>(stage) < limits.size();
    lanes += concat("<text x=\"0\" y=\"", top + 22, "\">stage ", stage,
                    "</text><path class=\"axis\" d=\"M", kStripNames, " ", floor, "h", kStripWidth,
                    "\"/>", strip_bars(stage, bins, floor, per_unit), "<text x=\"",
                    kStripNames + kStripWidth + 8, "\" y=\"", top + (limited ? 14 : 22), "\">",
                    rounded_text(strip_mean(bins), 3), "</text>");
    if (limited) lanes += strip_limit(limits[static_cast<std::size_t>(stage)], floor, per_unit);
    top += kStripHeight;
  }
  return concat("<svg class=\"strip\" viewBox=\"0 0 ", kStripNames + kStripWidth + kStripEnd, " ",
                top, "\" role=\"img\" aria-label=\"",
                html_text(concat(strips.run, ": ", std::string_view(what)), 200), "\">", lanes,
                "</svg>");
}

/// Of each label the first run that has measured something.
std::map<std::size_t, std::vector<ProbeValue>> logs_of(const Report& report) {
  std::map<std::size_t, std::vector<ProbeValue>> logs;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunRecord& run = report.runs[i];
    std::string settings = run.label;
    for (const auto& [key, value] : run.varied.fields)
      if (key != "train.seed") settings += concat("\n", key, " ", to_json(value));
    if (seen.contains(settings)) continue;
    try {
      std::vector<ProbeValue> log = read_probe_log(run.folder);
      if (log.empty()) continue;
      seen.insert(settings);
      logs.emplace(i, std::move(log));
    } catch (const Error&) {
      continue;  // the run counts as failed where a table needs the file, and says so there
    }
  }
  return logs;
}

/// Sharpness has limits where the run's edges are known.
std::vector<double> limits_for(const Report& report, const StripKind& kind, const Strips& strips) {
  const auto found = report.limits.find(strips.index);
  const bool curvature = std::string_view(kind.probe) == "sharpness";
  return curvature && found != report.limits.end() ? found->second : std::vector<double>();
}

}  // namespace

PageSection strips_section(const Report& report, Value& data) {
  PageSection section{
      .id = "strips", .title = "Stage by stage: edges, and what probes measured", .body = {}};
  for (const Chart& chart : report.edges) section.body += chart_figure(chart, data);
  const std::map<std::size_t, std::vector<ProbeValue>> logs = logs_of(report);
  std::size_t drawn = 0;
  for (const StripKind& kind : kStripKinds) {
    std::vector<Strips> all;
    double largest = 0;
    for (const auto& [run, log] : logs) {
      all.push_back(strips_of(report.runs[run].folder.filename().string(), log, kind));
      all.back().index = run;
      largest = std::max(largest, all.back().largest);
    }
    std::erase_if(all, [](const Strips& strips) { return strips.stages.empty(); });
    if (all.empty()) continue;
    section.body += concat("<h3>", html_text(kind.what),
                           "</h3>\n<p class=\"quiet\">All bars have "
                           "one scale, up to ",
                           rounded_text(largest, 3),
                           "; at the right the mean. One run for each setting.</p>\n");
    for (const Strips& strips : all) {
      if (++drawn > kMostStrips) continue;
      section.body +=
          concat("<figure><figcaption>", html_text(strips.run, 120),
                 "</figcaption><div class=\"wide\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"",
                 html_text(strips.run, 120), "\">",
                 strip_svg(strips, largest, kind.what, limits_for(report, kind, strips)),
                 "</div></figure>\n");
    }
  }
  if (drawn > kMostStrips)
    section.body += concat("<p>", drawn - kMostStrips,
                           " more are not drawn; <code>pipewright plot</code> draws any.</p>\n");
  return section;
}

}  // namespace pipewright
