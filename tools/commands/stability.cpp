// SPDX-License-Identifier: Apache-2.0
// `pipewright stability`: how large a learning rate each stage bears, given what its updates read.
#include <cmath>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/experiment/dynamics.h"
#include "core/experiment/experiment.h"
#include "core/experiment/identity.h"
#include "core/records/probe_log.h"
#include "core/records/run_record.h"
#include "core/stability/stability_report.h"
#include "core/system/given_files.h"
#include "core/system/terminal.h"
#include "tools/command.h"

namespace pipewright {
namespace {

enum class StabilityFormat { Text, Json, Csv };

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

/// Reads {"matrix": [[…], …]}, symmetric, with a row for each stage.
Hessian read_hessian(const std::filesystem::path& file, int stages) {
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::Experiment, message, file.string());
  };
  const Value document = load_json(file);
  const Value* matrix = document.find("matrix");
  if (matrix == nullptr || !matrix->is(Value::Kind::Sequence))
    refuse("has no matrix; expected {\"matrix\": [[2, 1], [1, 2]]}, one row for each stage");
  if (std::ssize(matrix->items) != stages)
    refuse(concat("matrix has ", counted(matrix->items.size(), "row"), " for ",
                  counted(stages, "stage"), "; expected one for each stage"));
  Hessian hessian;
  for (const Value& row : matrix->items) {
    if (std::ssize(row.items) != stages)
      refuse(concat("row ", hessian.size(), " of the matrix has ",
                    counted(row.items.size(), "number"), "; expected ", stages));
    auto& numbers = hessian.emplace_back();
    for (const Value& each : row.items) {
      const bool integer = each.is(Value::Kind::Integer);
      if (!integer && !each.is(Value::Kind::Number))
        refuse(concat("row ", hessian.size() - 1, " of the matrix has ", each.described(),
                      "; expected numbers"));
      numbers.push_back(integer ? static_cast<double>(each.integer) : each.number);
    }
  }
  if (const std::string fault = fault_of(hessian); !fault.empty()) refuse("matrix " + fault);
  return hessian;
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

MeasuredCurvature curvature_of_run(const std::filesystem::path& folder,
                                   const StabilityReport& report) {
  const std::filesystem::path probes = folder / "probes.csv";
  const std::string hint = "expected `probes: [{name: sharpness, every: 200}]` in its experiment";
  if (!std::filesystem::exists(probes))
    throw Error(ErrorKind::Data, concat("the run has no probes.csv; ", hint), folder.string());
  const LastProbeValues last = last_probe_values(
      folder, "sharpness", report.rule.preconditioned ? "preconditioned" : "largest");
  MeasuredCurvature measured{last.stages, last.model};
  if (measured.empty())
    throw Error(
        ErrorKind::Data,
        concat("has no ", report.rule.preconditioned ? "preconditioned " : "", "sharpness; ", hint),
        probes.string());
  const int stages = static_cast<int>(report.stages.size());
  if (!measured.stages.empty() &&
      (measured.stages.begin()->first < 0 || measured.stages.rbegin()->first >= stages))
    throw Error(ErrorKind::Data,
                concat("measures stage ", measured.stages.rbegin()->first,
                       "; expected stages 0 to ", stages - 1),
                probes.string());
  return measured;
}

void print_notes(const StabilityReport& report, const Experiment& experiment) {
  if (!report.measured.empty())
    print(
        "\nnote: training drifts to the edge of stability by itself: a product near the edge is a "
        "state, one that stays past it is a warning\n");
  if (report.rule.preconditioned)
    print(
        "\nnote: curvature is that of the preconditioned Hessian P^-1/2 H P^-1/2, with %s's "
        "divisors P as they are\n",
        experiment.resolved.find_path("optimizer.name")->text.c_str());
  if (report.first_mismatch >= 0 && report.discrepancy == 0)
    print(
        "\nnote: the backward of stage %d reads other weights than its forward; that is left out "
        "(--discrepancy 1 takes it as large as the curvature)\n",
        report.first_mismatch);
  if (experiment.resolved.find_path("lr_schedule.name")->text != "constant")
    print("\nnote: lr is the optimizer's; lr_schedule changes it over time\n");
}

void print_as_text(const StabilityReport& report, const Experiment& experiment) {
  print("experiment  %s\n\n%s", experiment.name.c_str(), stability_text(report).c_str());
  if (const std::string measured = measured_text(report); !measured.empty())
    print("\n%s", measured.c_str());
  print_notes(report, experiment);
}

int run_stability(const std::vector<std::string>& arguments) {
  CommandLine line(
      kStability,
      "Prints how large a learning rate each stage bears on a quadratic loss: the delay of what "
      "its "
      "forward and backward read, how weights are predicted, and the edge of stability, that is, "
      "the largest stable product of learning rate and curvature of the stage alone. They follow "
      "from the schedule in its steady state and the optimizer's recurrence. With --run they stand "
      "beside the curvature that the probe `sharpness` has measured.");
  line.experiment(false);
  line.point();
  line.option("run", "DIR", "the folder of a run of this experiment, whose probes.csv is read");
  line.option("hessian", "FILE",
              "a Hessian as JSON, {\"matrix\": [[2, 1], [1, 2]]} with a row for each stage: also "
              "print the largest stable learning rate of the whole pipeline");
  line.option("discrepancy", "D",
              "where forward and backward read different weights: PipeMare's Δ as a part of the "
              "curvature",
              "0");
  line.option("format", "F", "print as text, json or csv", "text");
  line.option("json", "FILE", "write all figures as JSON");
  if (!line.parse(arguments)) return 0;
  const StabilityFormat format = stability_format(line.text("format"));
  const double discrepancy = given_discrepancy(line);
  const Experiment experiment = experiment_of(line);
  if (line.given("run")) refuse_other_run(line.text("run"), experiment);
  std::optional<Dynamics> dynamics = dynamics_of(experiment);
  const Value& optimizer = *experiment.resolved.find("optimizer");
  if (!dynamics)
    throw Error(ErrorKind::Experiment,
                concat("the optimizer ", optimizer.find("name")->text,
                       " is no linear recurrence, so it has no edge; expected sgd, adam, adamw or "
                       "rmsprop"),
                experiment.where("optimizer.name"));
  dynamics->discrepancy = discrepancy;
  StabilityReport report = stability_report(*dynamics);
  if (line.given("hessian"))
    report.coupled = coupled_stability(
        *dynamics, read_hessian(line.text("hessian"), experiment.pipeline.stages));
  if (line.given("run")) report.measured = curvature_of_run(line.text("run"), report);
  Value figures = stability_value(report);
  figures.at_or_add("optimizer") = optimizer;
  const std::string json = to_json(figures) + "\n";
  switch (format) {
    case StabilityFormat::Text: print_as_text(report, experiment); break;
    case StabilityFormat::Json: print("%s", json.c_str()); break;
    case StabilityFormat::Csv: print("%s", stability_csv(report).c_str()); break;
  }
  if (line.given("json")) write_output(line.text("json"), json);
  return 0;
}

}  // namespace

const Command kStability{"stability",
                         "stability FILE [--run DIR] [--hessian H.json] [--format F] [--json F]",
                         "how large a learning rate each stage bears", run_stability};

}  // namespace pipewright
