// SPDX-License-Identifier: Apache-2.0
// `pipewright stability`: the largest learning rate that each stage tolerates, given what its
// updates read.
#include <cmath>
#include <functional>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/experiment.h"
#include "core/experiment/grouped_parameters.h"
#include "core/experiment/identity.h"
#include "core/records/probe_log.h"
#include "core/records/run_record.h"
#include "core/stability/stability_report.h"
#include "core/stability/swept_edges.h"
#include "core/sweep/sweep_stability.h"
#include "core/system/given_files.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/results.h"

namespace pipewright {
namespace {

enum class StabilityFormat { Text, Json, Csv };

constexpr int kMostRows = 256;  // of a Hessian: some minutes

StabilityFormat stability_format(const std::string& name) {
  if (name == "text") return StabilityFormat::Text;
  if (name == "json") return StabilityFormat::Json;
  if (name == "csv") return StabilityFormat::Csv;
  throw Error(ErrorKind::Experiment,
              concat("--format is '", name, "'; expected text, json or csv"));
}

double given_discrepancy(const CommandLine& line) {
  const std::string text = line.text("discrepancy");
  const Value value = parse_scalar(text, "--discrepancy");
  const double number =
      value.is(Value::Kind::Integer) ? static_cast<double>(value.integer) : value.number;
  const bool is_number = value.is(Value::Kind::Integer) || value.is(Value::Kind::Number);
  if (!is_number || !std::isfinite(number))
    throw Error(ErrorKind::Experiment,
                concat("--discrepancy is '", text, "'; expected a number, such as 1"));
  return number;
}

/// A Hessian with the number of weights, and rows, of each stage.
struct GivenHessian {
  Hessian matrix;
  Blocks blocks;
};

using Refusal = std::function<void(const std::string&)>;

/// The rows of each stage: as "blocks" says, or as many for each.
Blocks read_blocks(const Value& document, std::int64_t rows, int stages, const Refusal& refuse) {
  const Value* given = document.find("blocks");
  if (given == nullptr) {
    if (rows < stages || rows % stages != 0)
      refuse(concat("matrix has ", counted(rows, "row"), " for ", counted(stages, "stage"),
                    "; expected as many for each stage, or \"blocks\": [2, 1, …] with the number "
                    "of each"));
    return Blocks(static_cast<std::size_t>(stages), static_cast<int>(rows / stages));
  }
  if (!given->is(Value::Kind::Sequence) || std::ssize(given->items) != stages)
    refuse(concat("blocks is ", given->described(), "; expected a list of ",
                  counted(stages, "number"), ", one for each stage"));
  Blocks blocks;
  std::int64_t sum = 0;
  for (const Value& each : given->items) {
    if (!each.is(Value::Kind::Integer) || each.integer < 1 || each.integer > rows)
      refuse(concat("block ", blocks.size(), " is ", each.described(), "; expected 1 to ", rows,
                    " rows of the matrix"));
    blocks.push_back(static_cast<int>(each.integer));
    sum += each.integer;
  }
  if (sum != rows)
    refuse(concat("blocks have ", counted(sum, "row"), " together, but matrix has ", rows));
  return blocks;
}

/// Reads {"matrix": [[…], …], "blocks": […]}: symmetric, with one or more rows for each stage.
GivenHessian read_hessian(const std::filesystem::path& file, int stages) {
  const Refusal refuse = [&](const std::string& message) {
    throw Error(ErrorKind::Experiment, message, file.string());
  };
  const Value document = load_json(file);
  const Value* matrix = document.find("matrix");
  if (matrix == nullptr || !matrix->is(Value::Kind::Sequence))
    refuse(
        "has no matrix; expected {\"matrix\": [[2, 1], [1, 2]]}, one or more rows for each stage");
  const auto rows = std::ssize(matrix->items);
  if (rows > kMostRows)
    refuse(concat("matrix has ", counted(rows, "row"), "; expected at most ", kMostRows,
                  ", because the time grows with their third power"));
  GivenHessian hessian{.blocks = read_blocks(document, rows, stages, refuse)};
  for (const Value& row : matrix->items) {
    if (std::ssize(row.items) != rows)
      refuse(concat("row ", hessian.matrix.size(), " of the matrix has ",
                    counted(row.items.size(), "number"), "; expected ", rows));
    auto& numbers = hessian.matrix.emplace_back();
    for (const Value& each : row.items) {
      const bool integer = each.is(Value::Kind::Integer);
      if (!integer && !each.is(Value::Kind::Number))
        refuse(concat("row ", hessian.matrix.size() - 1, " of the matrix has ", each.described(),
                      "; expected numbers"));
      numbers.push_back(integer ? static_cast<double>(each.integer) : each.number);
    }
  }
  if (const std::string fault = fault_of(hessian.matrix); !fault.empty()) refuse("matrix " + fault);
  return hessian;
}

CoupledStability coupled_of(const Dynamics& dynamics, const GivenHessian& hessian) {
  StatusLine status(stderr);
  int done = 0;
  return coupled_stability(dynamics, hessian.matrix, hessian.blocks, [&] {
    status.show(concat("largest stable learning rate of ", counted(hessian.matrix.size(), "weight"),
                       ": eigenvalues at ", counted(++done, "angle")));
  });
}

/// Throws Error{Experiment} unless the folder holds a run of this very experiment.
void refuse_other_run(const std::filesystem::path& folder, const Experiment& experiment) {
  const RunRecord run = read_run(folder);
  if (run.state == "missing")
    throw Error(ErrorKind::Experiment, concat("--run ", folder.string(),
                                              " holds no run; expected a folder with run.json"));
  if (run.digest == experiment.digest) return;
  const std::string changes =
      run.config.known() ? changes_between(run.config.whole(), experiment.resolved) : "";
  throw Error(ErrorKind::Experiment,
              concat("--run ", folder.string(), " is a run of another experiment",
                     changes.empty() ? "" : ": ", changes, "; expected one of this file, or ",
                     (folder / "experiment.yaml").string(), " as the file"));
}

/// Fills in where sharpness was measured last, and which measurement of a stage is furthest beyond
/// its edge.
void add_times(const std::filesystem::path& folder, std::string_view quantity,
               const StabilityReport& report, MeasuredCurvature& measured) {
  double most = 0;
  for (const ProbeValue& each : read_probe_log(folder)) {
    if (each.probe != "sharpness" || each.quantity != quantity) continue;
    measured.when = concat("epoch ", each.epoch, ", mini-batch ", each.minibatch);
    if (!each.stage || !measured.stages.contains(*each.stage)) continue;
    const double share = each.value / report.stages[as_size(*each.stage)].edge;
    if (!(share > most)) continue;
    most = share;
    measured.furthest = {*each.stage, each.value, measured.when};
  }
}

/// Whether the learning rate is the same in all of a training.
bool is_constant(const Experiment& experiment) {
  constexpr std::int64_t kTimes = 1000;  // any: what matters is whether there is a warm-up
  return experiment.resolved.find_path("lr_schedule.name")->text == "constant" &&
         experiment.lr_schedule.at(1, 0, kTimes) == 1;
}

MeasuredCurvature curvature_of_run(const std::filesystem::path& folder,
                                   const StabilityReport& report) {
  const std::filesystem::path probes = folder / "probes.csv";
  const std::string hint = "expected `probes: [{name: sharpness, every: 200}]` in its experiment";
  if (!std::filesystem::exists(probes))
    throw Error(ErrorKind::Data, concat("the run has no probes.csv; ", hint), folder.string());
  const char* quantity = report.dynamics.rule.preconditioned ? "preconditioned" : "largest";
  const LastProbeValues last = last_probe_values(folder, "sharpness", quantity);
  MeasuredCurvature measured{.stages = last.stages, .model = last.model, .when = ""};
  if (measured.empty())
    throw Error(ErrorKind::Data,
                concat("has no ", report.dynamics.rule.preconditioned ? "preconditioned " : "",
                       "sharpness; ", hint),
                probes.string());
  const int stages = static_cast<int>(report.stages.size());
  if (!measured.stages.empty() &&
      (measured.stages.begin()->first < 0 || measured.stages.rbegin()->first >= stages))
    throw Error(ErrorKind::Data,
                concat("measures stage ", measured.stages.rbegin()->first,
                       "; expected stages 0 to ", stages - 1),
                probes.string());
  add_times(folder, quantity, report, measured);
  return measured;
}

void print_notes(const StabilityReport& report, const Experiment& experiment,
                 const std::string& optimizer) {
  if (!report.measured.empty())
    print(
        "\nnote: training drifts to the edge of stability by itself: a product near the edge is a "
        "state, one that stays past it is a warning\n");
  if (report.dynamics.rule.preconditioned)
    print(
        "\nnote: curvature is that of the preconditioned Hessian P^-1/2 H P^-1/2, with %s's "
        "divisors P as they are\n",
        experiment.resolved.find_path(dotted(optimizer) + ".name")->text.c_str());
  if (report.first_mismatch >= 0 && report.dynamics.discrepancy == 0)
    print(
        "\nnote: the backward of stage %d reads other weights than its forward; that is left out "
        "(--discrepancy 1 takes it as large as the curvature)\n",
        report.first_mismatch);
  if (const std::string remark = edges_remark(rules_beyond_edges(experiment)); !remark.empty())
    print("\nnote: %s\n", remark.c_str());
  if (experiment.resolved.find_path("lr_schedule.name")->text != "constant")
    print("\nnote: lr is the optimizer's; lr_schedule changes it over time\n");
}

void print_as_text(const StabilityReport& report, const Experiment& experiment) {
  print("experiment  %s\n\n%s", experiment.name.c_str(), stability_text(report).c_str());
  print_notes(report, experiment, "optimizer");
  print("\n%s", answer_text(report).c_str());
}

/// An optimizer of groups: a report of each that has edges, the smallest first.
void print_groups(const std::vector<GroupDynamics>& groups, const Experiment& experiment,
                  double discrepancy, const CommandLine& line, StabilityFormat format) {
  line.refuse_given({"run", "hessian"},
                    "is about the curvature of whole stages, but the optimizer has groups");
  if (format == StabilityFormat::Csv)
    throw Error(ErrorKind::Experiment,
                "--format is 'csv', but the optimizer has groups; expected text or json");
  Value figures = Value::mapping();
  Value& list = figures.at_or_add("groups") = Value::sequence();
  if (format == StabilityFormat::Text) print("experiment  %s\n", experiment.name.c_str());
  for (GroupDynamics group : groups) {
    group.dynamics.discrepancy = discrepancy;
    const StabilityReport report = stability_report(group.dynamics);
    Value& value = list.items.emplace_back(stability_value(report));
    value.at_or_add("optimizer") = *experiment.resolved.find_path(dotted(group.option));
    if (format != StabilityFormat::Text) continue;
    print("\n%s\n\n%s", group.option.c_str(), stability_text(report).c_str());
    print_notes(report, experiment, group.option);
    print("\n%s", answer_text(report).c_str());
  }
  const std::string json = to_json(figures) + "\n";
  if (format == StabilityFormat::Json) print("%s", json.c_str());
  if (line.given("json")) write_output(line.text("json"), json);
}

void declare_options(CommandLine& line) {
  line.experiment(false);
  line.point();
  line.flag(
      "sweep",
      "one row for each point of the file's sweep: its smallest edge, at which stage, and the "
      "delay there; ends with the scheme that tolerates the largest learning rate");
  line.option("run", "DIR", "the folder of a run of this experiment, whose probes.csv is read");
  line.where();
  line.option("hessian", "FILE",
              "a Hessian as JSON, {\"matrix\": [[2, 1], [1, 2]]}: also print the largest stable "
              "learning rate of the whole pipeline. Each stage has one row, or as many as every "
              "other, or those that \"blocks\": [2, 1, …] says");
  line.option("discrepancy", "D",
              "where forward and backward read different weights: PipeMare's Δ in units of the "
              "stage's own curvature λ, so that its gradient is λ·((1 + D)·w_forward − "
              "D·w_backward). A whole pipeline has it in each stage's own block, and none between "
              "stages. The model `quadratic` calls it relative_discrepancy",
              "0");
  line.option("format", "F", "print as text, json or csv", "text");
  line.output("json", "FILE", "write all figures as JSON");
  line.output("csv", "FILE", "with --sweep: write all points as CSV");
}

/// Says beside figures for other programs what they leave out.
void note_beside(StabilityFormat format, const std::string& remark) {
  if (format != StabilityFormat::Text && !remark.empty()) print_error("note: %s\n", remark.c_str());
}

int run_swept_stability(const CommandLine& line) {
  line.refuse_given({"point", "run", "where", "hessian"},
                    "is for one experiment, and --sweep takes all points");
  const StabilityFormat format = stability_format(line.text("format"));
  SweptEdges sweep;
  {
    StatusLine status(stderr);
    sweep = sweep_stability(line.experiment_arguments().document(),
                            {.discrepancy = given_discrepancy(line), .progress = [&](auto done) {
                               if (done % 10 == 0)
                                 status.show(concat("found the edges of ", counted(done, "point")));
                             }});
  }
  const std::string json = to_json(swept_value(sweep)) + "\n";
  switch (format) {
    case StabilityFormat::Text:
      print("experiment  %s\n\n%s", sweep.name.c_str(), swept_text(sweep).c_str());
      if (!sweep.remark.empty()) print("\nnote: %s\n", sweep.remark.c_str());
      break;
    case StabilityFormat::Json: print("%s", json.c_str()); break;
    case StabilityFormat::Csv: print("%s", swept_csv(sweep).c_str()); break;
  }
  note_beside(format, sweep.remark);
  if (line.given("json")) write_output(line.text("json"), json);
  if (line.given("csv")) write_output(line.text("csv"), swept_csv(sweep));
  return 0;
}

int run_stability(const std::vector<std::string>& arguments) {
  CommandLine line(
      kStability,
      "Prints the largest learning rate that each stage tolerates on a quadratic loss: the delay "
      "of what its forward and backward read, how weights are predicted, and the edge of "
      "stability, "
      "that is, the largest stable product of learning rate and curvature of the stage alone. They "
      "follow from the schedule in its steady state and the optimizer's recurrence. With --run "
      "they "
      "stand beside the curvature that the probe `sharpness` has measured, and with --sweep they "
      "are compared between the points of a sweep.");
  declare_options(line);
  if (!line.parse(arguments)) return 0;
  if (line.given("sweep")) return run_swept_stability(line);
  line.refuse_given({"csv"}, "needs --sweep");
  const StabilityFormat format = stability_format(line.text("format"));
  const double discrepancy = given_discrepancy(line);
  const Experiment experiment = experiment_of(line);
  const std::filesystem::path run = run_in(line.text("run"), line);
  if (line.given("run")) refuse_other_run(run, experiment);
  std::vector<GroupDynamics> all = dynamics_of_groups(experiment);
  if (all.empty())
    throw Error(ErrorKind::Experiment, no_recurrence(experiment),
                experiment.where("optimizer.name"));
  if (!experiment.optimizer->groups().empty()) {
    print_groups(all, experiment, discrepancy, line, format);
    return 0;
  }
  Dynamics* const dynamics = &all.front().dynamics;
  dynamics->discrepancy = discrepancy;
  StabilityReport report = stability_report(*dynamics);
  if (line.given("hessian"))
    report.coupled =
        coupled_of(*dynamics, read_hessian(line.text("hessian"), experiment.pipeline.stages));
  if (line.given("run")) report.measured = curvature_of_run(run, report);
  if (!is_constant(experiment)) report.measured.furthest.reset();  // the rate was another then
  Value figures = stability_value(report);
  figures.at_or_add("optimizer") = *experiment.resolved.find("optimizer");
  const std::string json = to_json(figures) + "\n";
  switch (format) {
    case StabilityFormat::Json: print("%s", json.c_str()); break;
    case StabilityFormat::Csv: print("%s", stability_csv(report).c_str()); break;
    default: print_as_text(report, experiment); break;
  }
  note_beside(format, edges_remark(rules_beyond_edges(experiment)));
  if (line.given("json")) write_output(line.text("json"), json);
  return 0;
}

}  // namespace

const Command kStability{"stability",
                         "stability FILE [--sweep] [--run DIR] [--hessian H.json] [--format F] "
                         "[--json F]",
                         "print the largest learning rate that each stage tolerates",
                         run_stability};

}  // namespace pipewright
