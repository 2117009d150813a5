// `pipewright run`: trains one experiment.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/experiment/plugins.h"
#include "core/experiment/run.h"
#include "core/experiment/run_folder.h"
#include "core/runtime/mpi_wire.h"
#include "core/runtime/wire_team.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/launch.h"

namespace pipewright {
namespace {

std::chrono::milliseconds timeout_of(const Experiment& experiment) {
  const double seconds = experiment.resolved.find_path("pipeline.timeout")->number;
  return std::chrono::milliseconds(std::llround(1e3 * seconds));
}

/// As one process of several. A failure ends them all.
template <class Told>
void run_in_team(Experiment& experiment, const std::filesystem::path& out,
                 const RunChoices& choices, const Told& told) {
  const std::atomic<bool>* const stop = interrupt_flag();
  interrupt_on(kStopSignal);
  WireTeam team(mpi_wire(), stop, {.standstill = timeout_of(experiment)});
  try {
    run_experiment(experiment, out, choices, team, stop);
    team.part();
  } catch (const Error& error) {
    if (team.speaks()) std::fprintf(stderr, "%s\n", told(error).what());
    team.leave(static_cast<int>(error.kind()));
  }
}

/// Starts the processes. Where none of them lived to say how the run ended, that is said here.
int launch(const Experiment& experiment, const std::filesystem::path& out,
           const std::vector<std::string>& arguments) {
  if (!mpi_is_built()) mpi_wire();  // throws, saying what is missing
  std::vector<std::string> command{"run"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const int code = launch_processes(experiment.shape(1).workers(), command);
  const RunFolder folder(out);
  if (code != 0 && folder.state() == "interrupted") return static_cast<int>(ErrorKind::Interrupted);
  if (code == 0 || folder.state() != "running") return code;
  const std::string error = "all processes of the run died";
  Value run = load_yaml(folder.path() / "run.json");
  run.at_or_add("state") = Value::of(code == 130 ? "interrupted" : "failed");
  run.at_or_add("error") = Value::of(error);
  folder.write_state(run);
  throw Error(static_cast<ErrorKind>(code), error);
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kRun,
      "Trains one experiment and leaves experiment.yaml, run.json, steps.csv, epochs.csv and "
      "final.safetensors in its folder. The `sweep` of the file is left out: see `pipewright "
      "sweep`.");
  line.experiment(true);
  line.flag("resume", "go on at the last checkpoint of the folder; a finished run is left alone");
  line.flag("overwrite", "begin anew in a folder that holds a run");
  line.flag("quiet", "print nothing but errors");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  Problems faults;
  const Value document = given.document(faults);
  Experiment experiment = read_experiment(document, faults);
  const std::filesystem::path out =
      given.out.empty() ? std::filesystem::path("runs") / experiment.name : given.out;
  const RunChoices choices{.resume = line.given("resume"),
                           .overwrite = line.given("overwrite"),
                           .quiet = line.given("quiet")};
  const auto told = [&](const Error& error) {
    if (error.kind() != ErrorKind::Interrupted) return error;
    return Error(ErrorKind::Interrupted,
                 concat("interrupted; `pipewright run ", given.file.string(), " --out ",
                        out.string(), plugin_words(), " --resume` goes on at the last checkpoint"));
  };
  const auto started = launched();
  if (started) check_processes(experiment, *started);
  if (experiment.pipeline.execution == Execution::Mpi) {
    if (!started) return launch(experiment, out, arguments);
    run_in_team(experiment, out, choices, told);
    if (started->rank > 0) return 0;
  } else {
    Team alone;
    try {
      run_experiment(experiment, out, choices, alone, interrupt_flag());
    } catch (const Error& error) {
      throw told(error);
    }
  }
  if (!choices.quiet)
    std::fprintf(stderr, "%s: done, see %s\n", experiment.name.c_str(), out.c_str());
  return 0;
}

}  // namespace

const Command kRun{"run",
                   "run FILE [--set key=value]… [--profile P] [--out DIR] [--resume | --overwrite]",
                   "train one experiment", run};

}  // namespace pipewright
