// SPDX-License-Identifier: Apache-2.0
#include "core/stability/swept_edges.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/markup.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/config/json.h"

namespace pipewright {
namespace {

using Line = std::vector<std::string>;

bool of_scheme(const std::string& key) {
  return key == "scheme" || key == "label" || key.starts_with("scheme.");
}

/// What is compared, with the options of the scheme that vary: "spectrain (version 2)".
std::string contender_of(const SweptEdges& sweep, const SweptEdge& point) {
  const auto label = std::ranges::find(sweep.keys, "label") - sweep.keys.begin();
  const bool has_label = as_size(static_cast<int>(label)) < sweep.keys.size();
  if (has_label && !point.values[as_size(static_cast<int>(label))].is(Value::Kind::Null))
    return point.candidate;
  std::vector<std::string> options;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k)
    if (sweep.keys[k].starts_with("scheme.") && sweep.keys[k] != "scheme.name" &&
        !point.values[k].is(Value::Kind::Null))
      options.push_back(concat(short_key(sweep.keys[k]), " ", plain_text(point.values[k])));
  return options.empty() ? point.candidate
                         : concat(point.candidate, " (", join(options, ", "), ")");
}

/// The values of all keys but the scheme's: "stages 2, lr 0.1".
std::string condition_of(const SweptEdges& sweep, const SweptEdge& point) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k)
    if (!of_scheme(sweep.keys[k]) && !point.values[k].is(Value::Kind::Null))
      parts.push_back(concat(short_key(sweep.keys[k]), " ", plain_text(point.values[k])));
  return join(parts, ", ");
}

/// The contenders that tolerate most among the points of one condition.
struct Winner {
  std::string condition, names;
  double edge = 0;
  bool fresh = false;  ///< whether none of them reads old weights
};

void add(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// The winners of every condition, among all points or among those that read old weights.
std::vector<Winner> winners(const SweptEdges& sweep, bool only_old) {
  constexpr double kEqual = 1e-9;  // of edges that are found on the circle
  const auto counts = [&](const SweptEdge& p) { return p.known() && (p.oldest > 0 || !only_old); };
  std::vector<std::string> conditions;
  for (const SweptEdge& point : sweep.points)
    if (counts(point)) add(conditions, condition_of(sweep, point));
  std::vector<Winner> all;
  for (const std::string& condition : conditions) {
    Winner winner{.condition = condition, .fresh = true};
    const auto here = [&](const SweptEdge& p) {
      return counts(p) && condition_of(sweep, p) == condition;
    };
    for (const SweptEdge& point : sweep.points)
      if (here(point)) winner.edge = std::max(winner.edge, point.edge);
    std::vector<std::string> names;
    for (const SweptEdge& point : sweep.points)
      if (here(point) && point.edge >= winner.edge * (1 - kEqual)) {
        add(names, contender_of(sweep, point));
        winner.fresh = winner.fresh && point.oldest == 0;
      }
    winner.names = listed(names);
    all.push_back(winner);
  }
  return all;
}

/// "gpipe (lr × curvature up to 2)"; where conditions decide, "stages 2: gpipe (2); stages 4: …".
std::string winners_text(const std::vector<Winner>& all) {
  constexpr std::size_t kMost = 6;
  const auto [least, most] = std::ranges::minmax(all, {}, &Winner::edge);
  const bool one = std::ranges::all_of(
      all, [&](const Winner& winner) { return winner.names == all.front().names; });
  const auto up_to = [](double edge) {
    return std::isfinite(edge) ? concat("lr × curvature up to ", rounded_text(edge))
                               : std::string("every lr");
  };
  if (one && rounded_text(least.edge) == rounded_text(most.edge))
    return concat(all.front().names, " (", up_to(most.edge), ")");
  if (one)
    return concat(all.front().names, " (", up_to(least.edge), " at ", least.condition, ", ",
                  rounded_text(most.edge), " at ", most.condition, ")");
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i)
    parts.push_back(concat(all[i].names, all[i].condition.empty() ? "" : " at ", all[i].condition,
                           " (", up_to(all[i].edge), ")"));
  if (all.size() > kMost) parts.push_back(concat("… of ", all.size(), " combinations"));
  return join(parts, ", ");
}

/// A table of the points; the first and the last column are words.
std::vector<Line> lines_of(const SweptEdges& sweep) {
  std::vector<Line> lines{{"point", "smallest edge (lr × curvature)", "at stage", "forward delay",
                           "lr", "largest curvature at lr", ""}};
  for (const SweptEdge& point : sweep.points) {
    if (!point.known()) {
      lines.push_back({point.title, "–", "–", "–", "–", "–", point.reason});
      continue;
    }
    lines.push_back({point.title, rounded_text(point.edge), concat(point.stage),
                     concat(point.forward), number_text(point.lr),
                     point.lr > 0 ? rounded_text(point.edge / point.lr) : "–", ""});
  }
  return lines;
}

}  // namespace

void take(const StabilityReport& report, SweptEdge& edge) {
  edge.stage = tightest_stage(report);
  const StageStability& tightest = report.stages[as_size(edge.stage)];
  edge.edge = tightest.edge;
  edge.forward = tightest.delay.forward;
  edge.backward = tightest.delay.backward;
  edge.lr = report.lr;
  edge.preconditioned = report.dynamics.rule.preconditioned;
  for (const StageStability& stage : report.stages)
    edge.oldest = std::max(edge.oldest, stage.delay.forward);
}

std::string most_tolerant(const SweptEdges& sweep) {
  const std::vector<Winner> all = winners(sweep, false);
  if (all.empty()) return "No point of the sweep has a stability limit.";
  if (std::ranges::all_of(all, [](const Winner& winner) { return winner.edge == 0; }))
    return "No learning rate is stable at any point of the sweep.";
  std::string text = concat("The largest learning rate is tolerated by ", winners_text(all));
  const std::vector<Winner> old = winners(sweep, true);
  if (!old.empty() && std::ranges::all_of(all, &Winner::fresh))
    text += concat("; among schemes that read old weights, by ", winners_text(old));
  return text + ".";
}

std::string swept_text(const SweptEdges& sweep) {
  const std::vector<Line> lines = lines_of(sweep);
  TextTable table(lines[0], {0, lines[0].size() - 1});
  for (std::size_t i = 1; i < lines.size(); ++i) table.add(lines[i]);
  return concat(table.text(), "\n", most_tolerant(sweep), "\n");
}

std::string swept_csv(const SweptEdges& sweep) {
  std::string text;
  for (const std::string& key : sweep.keys) text += csv_text(key) + ",";
  text += "candidate,points,lr,edge,stage,forward_delay,backward_delay,reason\n";
  for (const SweptEdge& point : sweep.points) {
    for (const Value& value : point.values)
      text += concat(value.is(Value::Kind::Null) ? "" : csv_text(plain_text(value)), ",");
    text += concat(csv_text(point.candidate), ",", point.points, ",");
    text += point.known() ? concat(point.lr, ",", point.edge, ",", point.stage, ",", point.forward,
                                   ",", point.backward, ",")
                          : concat(",,,,,", csv_text(point.reason));
    text += "\n";
  }
  return text;
}

Value swept_value(const SweptEdges& sweep) {
  Value value = Value::mapping();
  value.at_or_add("name") = Value::of(sweep.name);
  Value& points = value.at_or_add("points") = Value::sequence();
  for (const SweptEdge& point : sweep.points) {
    Value& row = points.items.emplace_back(
        mapping_of({{"title", Value::of(point.title)}, {"candidate", Value::of(point.candidate)}}));
    Value& varied = row.at_or_add("varied") = Value::mapping();
    for (std::size_t k = 0; k < sweep.keys.size(); ++k)
      if (!point.values[k].is(Value::Kind::Null)) varied.at_or_add(sweep.keys[k]) = point.values[k];
    row.at_or_add("points") = Value::of(point.points);
    if (!point.known()) {
      row.at_or_add("reason") = Value::of(point.reason);
      continue;
    }
    row.at_or_add("lr") = Value::of(point.lr);
    row.at_or_add("edge") = std::isfinite(point.edge) ? Value::of(point.edge) : Value();
    row.at_or_add("stage") = Value::of(point.stage);
    row.at_or_add("forward_delay") = Value::of(point.forward);
    row.at_or_add("backward_delay") = Value::of(point.backward);
    row.at_or_add("preconditioned") = Value::of(point.preconditioned);
  }
  value.at_or_add("conclusion") = Value::of(most_tolerant(sweep));
  return value;
}

}  // namespace pipewright
