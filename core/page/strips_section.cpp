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
    const auto position =
        static_cast<std::size_t>(std::ranges::lower_bound(order, moment) - order.begin());
    std::vector<Bin>& stage = strips.stages[*each.stage];
    stage.resize(bins);
    Bin& bin = stage[position * bins / order.size()];
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

/// What a run's sharpness is held against: a stage's edge over the learning rate.
struct Limits {
  std::vector<double> edges;  ///< of each stage, learning rate × curvature; empty: not known
  std::vector<double> rates;  ///< with which each epoch began

  /// The curvature up to which a stage is stable in an epoch; NaN or infinite if there is none.
  double at(int stage, int epoch) const {
    const auto s = static_cast<std::size_t>(stage), e = static_cast<std::size_t>(epoch);
    if (s >= edges.size() || e >= rates.size()) return kNoNumber;
    return edges[s] / rates[e];
  }
};

/// The limit that a stage's values are held against: dashed where it is within the lane, and at the
/// right its range over the training.
std::string strip_limit(int stage, const std::vector<Bin>& bins, const Limits& limits, double floor,
                        double per_unit) {
  const double width = kStripWidth / static_cast<double>(bins.size());
  double least = HUGE_VAL, most = -HUGE_VAL;
  std::string path;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double limit = limits.at(stage, bins[i].first_epoch);
    if (bins[i].count == 0 || !std::isfinite(limit)) continue;
    least = std::min(least, limit);
    most = std::max(most, limit);
    const double rise = per_unit * limit;
    if (rise > 0 && rise <= kStripHeight - 4)
      path += concat("M", short_number(kStripNames + width * static_cast<double>(i)), " ",
                     short_number(floor - rise), "h", short_number(width));
  }
  if (least > most) return {};
  const std::string low = rounded_text(least, 3), high = rounded_text(most, 3);
  return concat("<text x=\"", kStripNames + kStripWidth + 8, "\" y=\"", floor, "\">limit ", low,
                low == high ? "" : concat("–", high), "</text>",
                path.empty() ? "" : concat("<path class=\"limit\" d=\"", path, "\"/>"));
}

/// A lane of bars for each stage.
std::string strip_svg(const Strips& strips, double largest, const char* what,
                      const Limits& limits) {
  std::string lanes;
  double top = 0;
  const double per_unit = largest > 0 ? (kStripHeight - 8) / largest : 0;
  for (const auto& [stage, bins] : strips.stages) {
    const double floor = top + kStripHeight - 3;
    const std::string limit = strip_limit(stage, bins, limits, floor, per_unit);
    lanes += concat("<text x=\"0\" y=\"", top + 22, "\">stage ", stage,
                    "</text><path class=\"axis\" d=\"M", kStripNames, " ", floor, "h", kStripWidth,
                    "\"/>", strip_bars(stage, bins, floor, per_unit), "<text x=\"",
                    kStripNames + kStripWidth + 8, "\" y=\"", top + (limit.empty() ? 22 : 14),
                    "\">", rounded_text(strip_mean(bins), 3), "</text>", limit);
    top += kStripHeight;
  }
  return concat("<svg class=\"strip\" viewBox=\"0 0 ", kStripNames + kStripWidth + kStripEnd, " ",
                top, "\" role=\"img\" aria-label=\"",
                html_text(concat(strips.run, ": ", std::string_view(what)), 200), "\">", lanes,
                "</svg>");
}

/// What tells a run from others: all that varies but its seed, and its label, which may have the
/// seed in it. Runs of no sweep have their label alone.
std::string setting_of(const RunRecord& run) {
  if (run.varied.fields.empty()) return run.label;
  std::string setting;
  for (const auto& [key, value] : run.varied.fields)
    if (key != "train.seed" && key != "label") setting += concat(key, " ", to_json(value), "\n");
  return setting;
}

/// Of each setting the first run that has measured something.
std::map<std::size_t, std::vector<ProbeValue>> logs_of(const Report& report) {
  std::map<std::size_t, std::vector<ProbeValue>> logs;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunRecord& run = report.runs[i];
    const std::string setting = setting_of(run);
    if (seen.contains(setting)) continue;
    try {
      std::vector<ProbeValue> log = read_probe_log(run.folder);
      if (log.empty()) continue;
      seen.insert(setting);
      logs.emplace(i, std::move(log));
    } catch (const Error&) {
      continue;  // the run counts as failed where a table needs the file, and says so there
    }
  }
  return logs;
}

/// The learning rate of each epoch, as the run recorded it.
std::vector<double> rates_of(const RunRecord& run) {
  const auto column = std::ranges::find(run.columns, "lr");
  std::vector<double> rates;
  if (column == run.columns.end()) return rates;
  for (const std::vector<double>& epoch : run.epochs)
    rates.push_back(epoch.at(static_cast<std::size_t>(column - run.columns.begin())));
  return rates;
}

bool has_limits(const StripKind& kind, const Report& report) {
  return std::string_view(kind.probe) == "sharpness" && !report.stage_edges.empty();
}

/// Sharpness has limits where the run's edges are known.
Limits limits_for(const Report& report, const StripKind& kind, const Strips& strips) {
  const auto found = report.stage_edges.find(strips.index);
  if (!has_limits(kind, report) || found == report.stage_edges.end()) return {};
  return {.edges = found->second, .rates = rates_of(report.runs[strips.index])};
}

}  // namespace

PageSection strips_section(const Report& report) {
  PageSection section{
      .id = "strips", .title = "Stage by stage: edges, and what probes measured", .body = {}};
  for (const Chart& chart : report.edges) section.body += chart_figure(chart);
  for (const std::string& note : report.edges_notes)
    section.body += concat("<p class=\"quiet\">", html_text(note), "</p>\n");
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
                           rounded_text(largest, 3), "; at the right the mean",
                           has_limits(kind, report)
                               ? ", and the limit: the stage’s edge of stability over the learning "
                                 "rate with which the epoch began"
                               : "",
                           ". One run for each setting.</p>\n");
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
