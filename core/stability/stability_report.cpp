// SPDX-License-Identifier: Apache-2.0
#include "core/stability/stability_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/as_size.h"
#include "core/base/printed.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/config/json.h"

namespace pipewright {
namespace {

const char* name_of(PredictionRule::Kind kind) {
  switch (kind) {
    case PredictionRule::Kind::Optimizer: return "optimizer";
    case PredictionRule::Kind::Lookahead: return "lookahead";
    case PredictionRule::Kind::Geometric: return "geometric";
    case PredictionRule::Kind::Drift: return "drift";
  }
  return "";
}

/// The readings of a stage's own weights, of its forwards or of its backwards.
std::vector<Reading> own_readings(const Recurrence& recurrence, int stage, bool backward) {
  std::vector<Reading> all;
  for (const StageUpdate& update : recurrence.stages[as_size(stage)])
    for (const GradientTerm& term : update.terms)
      all.push_back(backward ? term.backward : term.forward[as_size(stage)]);
  return all;
}

/// "+3 optimizer", "+1 … +2 optimizer"; "" without predictions.
std::string prediction_text(const Dynamics& dynamics, const std::vector<Reading>& readings) {
  const auto [least, most] = std::ranges::minmax(readings, {}, &Reading::ahead);
  if (least.ahead == 0 && most.ahead == 0) return "";
  const Reading& some = most.ahead != 0 ? most : least;
  using Kind = PredictionRule::Kind;
  Kind kind = dynamics.recurrence.rules[as_size(some.rule)].kind;
  if (kind != Kind::Drift && !dynamics.rule.knows(kind == Kind::Lookahead)) kind = Kind::Optimizer;
  const auto steps = [](int ahead) { return concat(ahead > 0 ? "+" : "", ahead); };
  return concat(steps(least.ahead),
                least.ahead == most.ahead ? "" : concat(" … ", steps(most.ahead)), " ",
                name_of(kind));
}

std::string rule_text(const Dynamics& dynamics, int stage) {
  const auto forwards = own_readings(dynamics.recurrence, stage, false);
  const auto backwards = own_readings(dynamics.recurrence, stage, true);
  const std::string forward = prediction_text(dynamics, forwards);
  const std::string backward = prediction_text(dynamics, backwards);
  if (forwards == backwards) return forward.empty() ? "none" : forward;
  std::vector<std::string> parts;
  if (!forward.empty()) parts.push_back("forward " + forward);
  if (!backward.empty()) parts.push_back("backward " + backward);
  return parts.empty() ? "none" : join(parts, ", ");
}

Value edge_value(double edge) {
  return std::isfinite(edge) ? Value::of(edge) : Value();
}

std::optional<double> curvature_of(const StabilityReport& report, int stage) {
  const auto found = report.measured.stages.find(stage);
  if (found == report.measured.stages.end()) return {};
  return found->second;
}

}  // namespace

std::string circumstances(const StabilityReport& report, const StageStability& stage) {
  std::string text = concat("delay ", stage.delay.forward);
  if (report.dynamics.rule.momentum != 0)
    text += concat(", momentum ", report.dynamics.rule.momentum);
  return text;
}

StabilityReport stability_report(const Dynamics& dynamics) {
  StabilityReport report{.lr = dynamics.lr,
                         .dynamics = dynamics,
                         .effective_delay = effective_delay(dynamics.recurrence)};
  for (int stage = 0; stage < static_cast<int>(dynamics.recurrence.stages.size()); ++stage) {
    report.stages.push_back({.delay = delay_of(dynamics.recurrence, stage),
                             .rule = rule_text(dynamics, stage),
                             .edge = edge_alone(dynamics, stage)});
    const bool mismatch = own_readings(dynamics.recurrence, stage, false) !=
                          own_readings(dynamics.recurrence, stage, true);
    if (mismatch && report.first_mismatch < 0) report.first_mismatch = stage;
  }
  return report;
}

CoupledStability coupled_stability(const Dynamics& dynamics, const Hessian& hessian,
                                   const Blocks& blocks, const std::function<void()>& progress) {
  constexpr int kMostStates = 500;  // eigenvalues of such a matrix take half a second
  CoupledStability coupled{.edge = coupled_edge(dynamics, hessian, blocks, progress),
                           .minibatches = dynamics.recurrence.minibatches};
  if (coupled_states(dynamics, hessian, blocks) <= kMostStates)
    coupled.spectral_radius = spectral_radius(dynamics, hessian, dynamics.lr, blocks);
  return coupled;
}

int tightest_stage(const StabilityReport& report) {
  const auto least = std::ranges::min_element(report.stages, {}, &StageStability::edge);
  return static_cast<int>(least - report.stages.begin());
}

std::string stability_text(const StabilityReport& report) {
  const bool measured = !report.measured.stages.empty();
  std::vector<std::string> titles{
      "stage",      "forward delay",         "backward delay",
      "prediction", "edge (lr × curvature)", concat("largest curvature at lr ", report.lr)};
  if (measured)
    titles.insert(titles.end(),
                  {concat("curvature of this run (lr ", report.lr, ", ", report.measured.when, ")"),
                   "largest stable lr at that curvature"});
  TextTable table(titles, {3});
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageStability& stage = report.stages[i];
    std::vector<std::string> row{
        concat(i),  concat(stage.delay.forward), concat(stage.delay.backward),
        stage.rule, rounded_text(stage.edge),    rounded_text(stage.edge / report.lr)};
    if (measured) {
      const auto curvature = curvature_of(report, static_cast<int>(i));
      row.push_back(curvature ? rounded_text(*curvature) : "");
      row.push_back(
          curvature && *curvature > 0
              ? rounded_text(largest_lr_alone(report.dynamics, static_cast<int>(i), *curvature))
              : "");
    }
    table.add(row);
  }
  std::string text = table.text();
  text += concat("\neffective delay (root of the mean square over stages): ",
                 rounded_text(report.effective_delay), "\n");
  if (report.measured.model)
    text += concat("curvature of the whole model: ", rounded_text(*report.measured.model), "\n");
  if (report.coupled) {
    text += concat("the whole pipeline on this Hessian: stable up to lr ",
                   rounded_text(report.coupled->edge));
    if (report.coupled->spectral_radius)
      text += concat("; at lr ", report.lr, " distances are multiplied by ",
                     rounded_text(*report.coupled->spectral_radius), " every ",
                     report.coupled->minibatches == 1
                         ? "mini-batch"
                         : counted(report.coupled->minibatches, "mini-batch"));
    text += "\n";
  }
  return text;
}

std::string standing_text(const StabilityReport& report, int number, double curvature) {
  const StageStability& stage = report.stages[as_size(number)];
  const double product = report.lr * curvature;
  const std::string left =
      concat("lr ", report.lr, " × λ ", rounded_text(curvature), " = ", rounded_text(product));
  const std::string edge = concat("stage ", number, "'s edge ", rounded_text(stage.edge), " (",
                                  circumstances(report, stage), ")");
  if (product <= stage.edge)
    return concat(left, " is ", rounded_text(100 * product / stage.edge), " % of ", edge);
  const auto freest = std::ranges::max_element(report.stages, {}, &StageStability::edge);
  const auto other = static_cast<int>(freest - report.stages.begin());
  std::string line = concat(left, " is past ", edge);
  if (freest->edge > stage.edge)
    line += concat("; stage ", other, " (delay ", freest->delay.forward, ") allows ",
                   rounded_text(freest->edge));
  return line;
}

std::string measured_text(const StabilityReport& report) {
  if (report.measured.empty()) return "";
  std::string text =
      concat("At the curvature of this run (lr ", report.lr, ", ", report.measured.when, "), ");
  if (report.measured.stages.empty()) {
    const StageStability& tightest = report.stages[as_size(tightest_stage(report))];
    return text + concat("lr × λ of the whole model is ",
                         rounded_text(report.lr * *report.measured.model),
                         "; the smallest edge of a stage is ", rounded_text(tightest.edge), " (",
                         circumstances(report, tightest), ").\n");
  }
  const auto room = [&](const auto& measured) {
    return report.stages[as_size(measured.first)].edge / std::max(measured.second, 0.0);
  };
  const auto& [stage, curvature] = *std::ranges::min_element(report.measured.stages, {}, room);
  double stable = std::numeric_limits<double>::infinity();
  for (const auto& [each, of_stage] : report.measured.stages)
    stable = std::min(stable, largest_lr_alone(report.dynamics, each, of_stage));
  const bool all = report.measured.stages.size() == report.stages.size();
  text += standing_text(report, stage, curvature);
  text += concat("; ", all ? "all stages" : "the measured stages", " would be stable up to lr ",
                 rounded_text(stable), ".\n");
  const auto& furthest = report.measured.furthest;
  if (!furthest || furthest->when == report.measured.when) return text;
  return text + concat("Furthest it was in ", furthest->when, ", where ",
                       standing_text(report, furthest->stage, furthest->curvature), ".\n");
}

std::string stability_csv(const StabilityReport& report) {
  std::string text = "stage,forward_delay,backward_delay,rule,edge,curvature\n";
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageStability& stage = report.stages[i];
    const auto curvature = curvature_of(report, static_cast<int>(i));
    text += concat(i, ",", stage.delay.forward, ",", stage.delay.backward, ",\"", stage.rule, "\",",
                   stage.edge, ",", curvature ? number_text(*curvature) : "", "\n");
  }
  return text;
}

Value stability_value(const StabilityReport& report) {
  Value stages = Value::sequence();
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageStability& stage = report.stages[i];
    Value& row =
        stages.items.emplace_back(mapping_of({{"stage", Value::of(static_cast<int>(i))},
                                              {"forward_delay", Value::of(stage.delay.forward)},
                                              {"backward_delay", Value::of(stage.delay.backward)},
                                              {"rule", Value::of(stage.rule)},
                                              {"edge", edge_value(stage.edge)}}));
    if (const auto curvature = curvature_of(report, static_cast<int>(i)))
      row.at_or_add("curvature") = Value::of(*curvature);
  }
  Value value = mapping_of({{"stages", std::move(stages)},
                            {"lr", Value::of(report.lr)},
                            {"discrepancy", Value::of(report.dynamics.discrepancy)},
                            {"effective_delay", Value::of(report.effective_delay)}});
  if (report.measured.model) value.at_or_add("model_curvature") = Value::of(*report.measured.model);
  if (!report.coupled) return value;
  value.at_or_add("coupled_edge") = edge_value(report.coupled->edge);
  if (report.coupled->spectral_radius)
    value.at_or_add("spectral_radius") = Value::of(*report.coupled->spectral_radius);
  return value;
}

std::string stability_line(const StabilityReport& report) {
  const int number = tightest_stage(report);
  const StageStability& stage = report.stages[as_size(number)];
  if (stage.edge == 0)
    return report.dynamics.rule.momentum >= 1
               ? concat("no learning rate is stable: momentum ", report.dynamics.rule.momentum,
                        " is not below 1")
               : concat("no learning rate is stable at stage ", number, " (",
                        circumstances(report, stage), ")");
  std::string line = concat("lr × curvature up to ", rounded_text(stage.edge), ", least at stage ",
                            number, " (", circumstances(report, stage), ")");
  if (report.lr > 0)
    line += concat(": ", report.dynamics.rule.preconditioned ? "preconditioned " : "",
                   "curvature up to ", rounded_text(stage.edge / report.lr), " at lr ", report.lr);
  return line;
}

std::string answer_text(const StabilityReport& report) {
  if (!report.measured.empty()) return measured_text(report);
  std::string text = concat("In short: ", stability_line(report));
  const double least = report.stages[as_size(tightest_stage(report))].edge;
  const auto freest = std::ranges::max_element(report.stages, {}, &StageStability::edge);
  if (least > 0 && freest->edge > least)
    text += concat("; stage ", freest - report.stages.begin(), " (delay ", freest->delay.forward,
                   ") bears ", rounded_text(freest->edge / least), " times as much");
  if (report.coupled)
    text += concat("; the whole pipeline on this Hessian is stable up to lr ",
                   rounded_text(report.coupled->edge), ", and lr ", report.lr,
                   report.lr <= report.coupled->edge ? " is within" : " is beyond");
  return text + ".\n";
}

}  // namespace pipewright
