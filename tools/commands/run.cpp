// SPDX-License-Identifier: Apache-2.0
// `pipewright run`: trains one experiment.
#include "core/training/run.h"
#include "core/experiment/reading.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/config/json.h"
#include "core/experiment/experiment.h"
#include "core/experiment/plugins.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/measured_layout.h"
#include "core/processes/mpi_wire.h"
#include "core/processes/start_words.h"
#include "core/processes/wire_team.h"
#include "core/records/run_claim.h"
#include "core/sweep/sweep_plan.h"
#include "core/sweep/sweep_runner.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "core/training/checkpoint_manifest.h"
#include "core/training/resume.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/launch.h"
#include "tools/results.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

/// The start of a process of several, with the one that has started them, if that can be reached.
class Start {
 public:
  explicit Start(int rank) : rank_(rank), launched_(say_at_start({StartWord::Step::Begun, rank})) {}

  /// Waits for the others. Then, or with another error than that of a signal, the team speaks for
  /// itself.
  void meet(WireTeam& team) const {
    team.set_emergency([this](const Error& error, bool speaks) {
      if (!left_to_launcher(error)) say(StartWord::Step::Speaks);
      if (speaks) report(error);
    });
    try {
      team.meet();
    } catch (const Error& error) {
      const Error settled = team.agree_on(error);
      if (!left_to_launcher(settled)) say(StartWord::Step::Speaks);
      throw settled;
    }
    say(StartWord::Step::Speaks);
  }

  /// Reports the error with which the run ends, unless the launcher does.
  void report(const Error& error) const {
    if (left_to_launcher(error)) return;
    print_error("%s\n", error.what());
    say(StartWord::Step::Said);
  }

  /// The run has been trained: from now on the launcher looks after those that die or are stopped.
  void ends() const { say(StartWord::Step::Ends); }

 private:
  /// A launcher alone says that the run was interrupted: only it knows of a signal for certain, and
  /// until all processes are known, an end that a signal has caused may be that of another process,
  /// whose name only the launcher knows.
  bool left_to_launcher(const Error& error) const {
    return launched_ && error.kind() == ErrorKind::Interrupted;
  }
  void say(StartWord::Step step) const { say_at_start({step, rank_}); }

  int rank_;
  bool launched_;
};

/// Runs the experiment as one process of several. A failure ends all of them.
template <class Told>
void run_in_team(const Experiment& experiment, const std::filesystem::path& out, RunChoices choices,
                 int rank, const Told& told) {
  const std::atomic<bool>* const stop = interrupt_flag();
  interrupt_on(kStopSignal);
  const Start start(rank);
  choices.report = [&](const Error& error) { start.report(error); };
  WireTeam team(mpi_wire(), stop, {.standstill = experiment.pipeline.timeout});
  try {
    start.meet(team);
    run_experiment(experiment, out, choices, team, stop);
    start.ends();
    team.finish();
  } catch (const Error& error) {
    const Error settled = team.agree_on(error);
    if (team.reports_to_user()) start.report(told(settled));
    team.end_all(static_cast<int>(settled.kind()));
  }
}

constexpr const char* kAllDied = "all processes of the run died";

/// Records the end of a run whose processes could not.
void record_end(const RunFolder& folder, bool interrupted) {
  Value run = load_json(folder.path() / "run.json");
  run.at_or_add("state") = Value::of(interrupted ? "interrupted" : "failed");
  run.at_or_add("error") = Value::of(kAllDied);
  folder.write_state(run);
}

/// Starts the processes of a run. If none of them could record its end, does so here.
template <class Told>
int launch(const Experiment& experiment, const std::filesystem::path& out,
           const std::vector<std::string>& arguments, const Told& told) {
  if (!mpi_is_built()) mpi_wire();  // throws with what is missing
  std::vector<std::string> command{"run"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::filesystem::path record = out / "run.json";
  const auto recorded = [&] {
    std::error_code none;
    return std::filesystem::is_regular_file(record, none) ? read_file(record) : std::string();
  };
  const std::string before = recorded();
  LaunchEnd end;
  try {
    end = launch_processes(experiment.shape(1).workers(), command, experiment.pipeline.timeout);
  } catch (const Error& error) {
    throw told(error);
  }
  constexpr int kInterrupted = static_cast<int>(ErrorKind::Interrupted);
  // The processes may have refused the folder because of another run in it.
  const bool theirs = end.code != 0 && recorded() != before;
  const RunFolder folder(out);
  const std::string state = theirs ? folder.state() : std::string();
  if (state == "interrupted" && end.code != kInterrupted) end = {kInterrupted, false};
  const bool unrecorded = state == "running" && !is_held(out);
  if (unrecorded) record_end(folder, end.code == kInterrupted);
  if (!end.said) throw told(Error(ErrorKind::Interrupted, "interrupted"));
  if (unrecorded) throw Error(static_cast<ErrorKind>(end.code), kAllDied);
  return end.code;
}

/// The run folder. For a point of a sweep it is the one that the sweep would use.
std::filesystem::path folder_of(const ExperimentArguments& given, const OneExperiment& one,
                                const std::string& name) {
  if (!given.out.empty()) return given.out;
  const std::filesystem::path runs = std::filesystem::path("runs") / name;
  return one.point ? runs / one.point->point.folder() : runs;
}

/// For `run DIR --resume`: takes the experiment from the folder of the run.
void read_from_folder(ExperimentArguments& given, bool resume) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(given.file, ignored)) return;
  const std::filesystem::path path = given.file;
  if (!given.out.empty())
    throw Error(ErrorKind::Experiment,
                concat("is a folder, in which its run goes on; for another --out give ",
                       shell_quoted((path / "experiment.yaml").string())),
                path.string());
  if (!resume)
    throw Error(ErrorKind::Experiment,
                concat("is a folder; `pipewright run ", shell_quoted(path.string()),
                       " --resume` goes on with the run in it"),
                path.string());
  const RunFolder folder(path);
  if (!std::filesystem::exists(path / "run.json", ignored) ||
      !std::filesystem::exists(folder.experiment(), ignored))
    throw Error(ErrorKind::Experiment,
                "holds no run to go on with: run.json or experiment.yaml is missing",
                path.string());
  check_plugins(folder);
  given.out = path;
  given.file = folder.experiment();
}

/// The error after a signal, with the command that continues the run.
Error interrupted(const std::filesystem::path& out) {
  std::error_code ignored;
  if (!std::filesystem::exists(out / "run.json", ignored))
    return Error(ErrorKind::Interrupted, "interrupted before the run began");
  const std::string path = out.string();
  const std::string folder = shell_quoted(path.starts_with('-') ? concat("./", path) : path);
  const auto has_steps = [](const FoundManifest& each) {
    return each.damage || each.manifest->minibatches > 0;
  };
  const bool kept = std::ranges::any_of(find_manifests(RunFolder(out).checkpoints()), has_steps);
  return Error(
      ErrorKind::Interrupted,
      concat("interrupted; `pipewright run ", folder, plugin_words(),
             kept ? " --resume` goes on at the last checkpoint"
                  : " --resume` begins anew, because there is no checkpoint (train.checkpoint)"));
}

std::string slow_remark(const Experiment& experiment) {
  return precision_remark(
      experiment.train.precision,
      std::ranges::any_of(experiment.pipeline.devices,
                          [](const std::string& name) { return name == "cpu"; }));
}

int run_run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kRun,
      "Trains one experiment and leaves experiment.yaml, run.json, steps.csv, epochs.csv and "
      "final.safetensors in its folder. Of a file with a `sweep` it trains the base or, with "
      "--point, one point, as the sweep would and, without --out, in the folder that the sweep has "
      "for it. `pipewright sweep` trains them all. With --resume, FILE may be the folder of a run, "
      "which says everything about it.");
  line.experiment(true);
  line.point();
  line.flag("resume", "go on at the last checkpoint of the folder; a finished run is left alone");
  line.flag("overwrite", "begin anew in a folder that holds a run");
  line.flag("quiet", "print nothing but errors");
  line.where();
  if (!line.parse(arguments)) return 0;
  ExperimentArguments given = line.experiment_arguments();
  given.file = run_in(given.file, line);
  read_from_folder(given, line.given("resume"));
  Problems faults;
  const OneExperiment one = one_experiment(given, faults);
  const Experiment experiment = read_experiment(one.document, faults);
  check_hardware(one.document);  // nothing trains on it, but `check` refuses it, too
  need_libtorch();
  const std::filesystem::path out = folder_of(given, one, experiment.name);
  RunChoices choices{.resume = line.given("resume"),
                     .overwrite = line.given("overwrite"),
                     .quiet = line.given("quiet"),
                     .command = {"pipewright", "run"}};
  choices.command.insert(choices.command.end(), arguments.begin(), arguments.end());
  if (choices.resume && choices.overwrite)
    throw Error(ErrorKind::Experiment, "--resume and --overwrite exclude each other");
  const auto told = [&](const Error& error) {
    return error.kind() == ErrorKind::Interrupted ? interrupted(out) : error;
  };
  const auto started = launched();
  if (started) check_processes(experiment, *started);
  const bool mpi = experiment.pipeline.execution == Execution::Mpi;
  const bool speaks = started ? started->rank == 0 : !mpi;  // only one process prints
  for (const std::string& remark :
       {one.remark, slow_remark(experiment), memory_format_remark(experiment)})
    if (speaks && !choices.quiet && !remark.empty()) print_error("%s\n", remark.c_str());
  // Refuses a folder that is somebody else's. A folder that has only runs of ours is the sweep's.
  if (one.point && given.out.empty() && (!started || started->rank == 0))
    claim_sweep(out.parent_path());
  if (mpi) {
    if (!started) return launch(experiment, out, arguments, told);
    run_in_team(experiment, out, choices, started->rank, told);
    if (started->rank > 0) return 0;
  } else {
    Team alone;
    try {
      run_experiment(experiment, out, choices, alone, interrupt_flag());
    } catch (const Error& error) {
      throw told(error);
    }
  }
  if (one.point) write_point(out, one.point->point, static_cast<int>(one.point->number));
  if (!choices.quiet) print_error("%s: done, see %s\n", experiment.name.c_str(), out.c_str());
  return 0;
}

}  // namespace

const Command kRun{
    "run",
    "run FILE [--set key=value]… [--profile P] [--point P] [--out DIR] [--resume | --overwrite]",
    "train one experiment", run_run};

}  // namespace pipewright
