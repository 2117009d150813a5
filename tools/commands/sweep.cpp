// SPDX-License-Identifier: Apache-2.0
// `pipewright sweep`: performs all runs of an experiment's sweep, each in a process of its own.
#include <cstdio>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/experiment/named_keys.h"
#include "core/measuring/hardware_source.h"
#include "core/records/leftover_runs.h"
#include "core/records/run_claim.h"
#include "core/records/run_store.h"
#include "core/sweep/kept_results.h"
#include "core/sweep/sweep_runner.h"
#include "core/system/terminal.h"
#include "core/tables/table.h"
#include "core/tables/table_spec.h"
#include "core/tables/verdicts.h"
#include "tools/command.h"
#include "tools/commands/sweep_slurm.h"
#include "tools/interrupt.h"
#include "tools/results.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

SweepSettings settings_of(const CommandLine& line, const Value& document,
                          const std::vector<PlannedRun>& runs) {
  SweepSettings settings;
  settings.out = results_folder(line.experiment_arguments(), document);
  settings.jobs = line.given("jobs") ? line.integer("jobs") : default_jobs(runs);
  settings.resume = line.given("resume");
  settings.overwrite = line.given("overwrite");
  settings.metric = read_table_spec(document).metric.name;
  settings.perform = perform;
  if (settings.jobs < 1)
    throw Error(ErrorKind::Experiment,
                concat("--jobs is ", settings.jobs, "; expected at least 1"));
  return settings;
}

/// Removes the results of old runs before a sweep with --overwrite.
void clear_folders(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) {
    const RunFolder folder(run.folder);
    const FolderLock lock = claim(folder, {.overwrite = true});
    folder.clear();
  }
}

/// Clears them before the first run begins, so that no run of an earlier sweep counts as done if
/// this one is interrupted. A folder that cannot be cleared is left to its run, which says why.
void clear_what_can_be(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) try {
      clear_folders({run});
    } catch (const Error&) {
    }
}

/// Throws an error with one line per failed run.
void throw_if_failed(const SweepResult& result, std::size_t all) {
  if (result.failed.empty()) return;
  std::string text = concat(result.failed.size(), " of ", counted(all, "run"), " failed:");
  for (const FailedRun& run : result.failed) text += concat("\n  ", run.title, ": ", run.reason());
  throw Error(ErrorKind::Sweep,
              text + "\nlog.txt in a run's folder says more; --resume tries them again");
}

/// A sweep whose runs have been checked, and their states in Slurm.
struct Sweep {
  ExperimentArguments given;
  Value document;
  std::vector<PlannedRun> runs;
  SweepSettings settings;
  std::optional<SlurmSettings> slurm;
  std::filesystem::path rows;   ///< --results; empty: not given
  std::vector<bool> have_rows;  ///< which runs are finished there; empty: none is
  UnfinishedRuns unfinished;

  std::size_t done_before() const {
    return runs.size() - unfinished.free.size() - unfinished.queued.size();
  }
};

/// The runs that are left to do: those that neither their folders nor rows have.
std::vector<PlannedRun> left_of(const Sweep& sweep) {
  std::vector<PlannedRun> left = runs_to_do(sweep.runs, sweep.settings);
  if (sweep.have_rows.empty()) return left;
  std::set<std::filesystem::path> kept;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i)
    if (sweep.have_rows[i]) kept.insert(sweep.runs[i].folder);
  std::erase_if(left, [&](const PlannedRun& run) { return kept.contains(run.folder); });
  print_error("%zu of %s %s a row in %s\n", kept.size(), counted(sweep.runs.size(), "run").c_str(),
              kept.size() == 1 ? "has" : "have", sweep.rows.c_str());
  return left;
}

/// Performs the runs that are left in processes of this machine.
SweepResult run_here(const Sweep& sweep, const FolderLock& lock) {
  SweepProgress progress(stderr, takes_escapes(stderr), sweep.runs.size(), sweep.done_before());
  return run_sweep(sweep.unfinished.free, sweep.settings, progress, lock);
}

/// Collects the results of run folders into results.sqlite and prints the table.
void collect(const Sweep& sweep, const SweepResult& result) {
  const std::size_t done = sweep.done_before() + result.done;
  std::vector<RunRecord> records = records_of(sweep.runs);
  rebuild_run_store(sweep.settings.out, records);
  if (result.interrupted)
    throw Error(ErrorKind::Interrupted,
                concat("interrupted with ", done, " of ", counted(sweep.runs.size(), "run"),
                       " done; the same command with --resume",
                       sweep.settings.overwrite ? " instead of --overwrite" : "", " goes on, and `",
                       command_with("table", sweep.given, ""), "` shows what is done"));
  use_rows({.results = sweep.rows}, sweep.document, records);
  tell_of_faults(records);
  print_results(sweep.document, records);
  print_error("%zu of %s done, see %s\n", done, counted(sweep.runs.size(), "run").c_str(),
              (sweep.settings.out / "results.sqlite").c_str());
  tell_leftovers(sweep.given, sweep.document, sweep.settings.out, records);
  if (!sweep.unfinished.queued.empty()) print_error("%s\n", sweep.unfinished.queued_text().c_str());
  throw_if_failed(result, sweep.runs.size());
}

/// Determines and prints what is left to do.
void survey(Sweep& sweep) {
  sweep.unfinished = sort_by_queue(left_of(sweep), sweep.settings.out);
  const UnfinishedRuns& unfinished = sweep.unfinished;
  if (sweep.settings.overwrite && !unfinished.queued.empty())
    throw Error(
        ErrorKind::Experiment,
        concat(unfinished.queued_text(), "; scancel ends them, then give --overwrite again"),
        sweep.settings.out.string());
  if (sweep.settings.overwrite) return;
  const std::size_t before = sweep.done_before();
  if (!unfinished.tasks.empty())
    print_states(sweep.runs, unfinished.tasks);
  else if (before > 0)
    print_error("%zu of %s %s done already\n", before, counted(sweep.runs.size(), "run").c_str(),
                before == 1 ? "is" : "are");
}

void dry_run(Sweep& sweep) {
  survey(sweep);
  print_array(sweep.unfinished.free, sweep.settings.out, *sweep.slurm);
}

void execute(Sweep& sweep) {
  sweep.settings.stop = interrupt_flag();
  // The lock keeps others from starting or submitting these runs, also while a run that we started
  // lives.
  const FolderLock lock = claim_sweep(sweep.settings.out);
  survey(sweep);
  if (*sweep.settings.stop)
    throw Error(ErrorKind::Interrupted,
                concat("interrupted; nothing was ", sweep.slurm ? "submitted" : "begun"));
  if (sweep.slurm && !sweep.unfinished.free.empty()) {
    if (sweep.settings.overwrite) clear_folders(sweep.unfinished.free);
    submit_sweep(sweep.unfinished.free, sweep.settings.out, sweep.given, *sweep.slurm, lock);
    return;
  }
  if (sweep.settings.overwrite) clear_what_can_be(sweep.unfinished.free);
  collect(sweep, run_here(sweep, lock));
}

/// For --prune: removes runs that are no longer points of the file, and prints which.
void prune(const Sweep& sweep) {
  const FolderLock lock = claim_sweep(sweep.settings.out);
  const std::vector<RunRecord> records = records_of(sweep.runs);
  const std::string name = sweep.document.find("name")->text;
  const auto leftovers = leftovers_of(name, file_of(sweep.document), sweep.settings.out, records);
  if (leftovers.empty())
    print("nothing to remove: every run in %s is one of this file\n", sweep.settings.out.c_str());
  for (const std::filesystem::path& folder : leftovers) try {
      const std::vector<std::string> others = remove_run(folder);
      if (others.empty())
        print("removed %s\n", folder.c_str());
      else
        print_error("kept %s: it also holds %s\n", folder.c_str(), join(others, ", ").c_str());
    } catch (const Error& error) {
      print_error("kept %s: %s\n", folder.c_str(), error.message().c_str());
    }
  rebuild_run_store(sweep.settings.out, records);
}

void check_flags(const CommandLine& line) {
  if (line.given("resume") && line.given("overwrite"))
    throw Error(ErrorKind::Experiment, "--resume and --overwrite exclude each other");
  if (line.given("results") && !line.given("resume"))
    throw Error(ErrorKind::Experiment,
                "--results leaves out runs that are finished, so it needs --resume");
  for (const char* other : {"resume", "overwrite", "slurm"})
    if (line.given("prune") && line.given(other))
      throw Error(ErrorKind::Experiment, concat("--prune runs nothing; give --",
                                                std::string_view(other), " to a second command"));
}

int run_sweep(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSweep,
      "Runs every point of the experiment's `sweep`, each in a process and a folder of its own. "
      "All points are checked before the first one starts. A run that fails does not stop the "
      "others: "
      "the command then ends with exit code 7 and a line for each of them. At the end the folder "
      "has results.sqlite, and what `table` shows is printed. Ctrl-C ends the runs under way; "
      "--resume goes on with them at their last checkpoints.\n\n"
      "With --slurm the runs become a job array, whose script and logs are in the folder's slurm/. "
      "`sweep FILE --resume` later says what is done, running, pending, failed and missing, makes "
      "results.sqlite and the table, and runs here what the cluster has left undone; with --slurm "
      "it submits that. What is in the queue is never started a second time.");
  line.experiment(true);
  line.option(
      "jobs", "N",
      "how many runs to perform at once; default: cores / (pipeline.threads × workers that are "
      "threads)");
  line.flag("resume", "leave finished runs alone, go on with the others");
  line.option("results", "FILE",
              "with --resume: leave out runs whose results are rows of this file, too, as `table "
              "--keep` writes them");
  line.flag("overwrite", "begin every run anew");
  line.flag(
      "prune",
      "run nothing, but remove the runs that an earlier version of the file, or other --set and "
      "--profile, have left in the folder; only files that pipewright writes are removed, and "
      "no run that is under way");
  declare_slurm_options(line);
  std::vector<std::string> known = arguments;
  std::erase(known, "--keep-going");  // of scripts; sweeps always do
  if (!line.parse(known)) return 0;
  check_flags(line);

  Sweep sweep;
  sweep.given = line.experiment_arguments();
  sweep.document = sweep.given.document();
  sweep.runs = plan_sweep(sweep.document, results_folder(sweep.given, sweep.document));
  check_hardware(sweep.document);
  need_libtorch();
  sweep.settings = settings_of(line, sweep.document, sweep.runs);
  sweep.settings.anew = [given = sweep.given](const PlannedRun& run) {
    ExperimentArguments alone = given;
    if (!given.out.empty()) alone.out = run.folder;
    return command_with("run", alone, concat("--point ", run.point, " --overwrite"));
  };
  sweep.slurm = slurm_settings(line, sweep.runs);
  sweep.rows = line.text("results");
  if (!sweep.rows.empty())
    sweep.have_rows = have_rows(read_result_rows(sweep.rows), point_digests(sweep.document));
  if (line.given("prune")) {
    prune(sweep);
    return 0;
  }
  const bool dry = line.given("dry-run");
  if (sweep.slurm && !dry) check_slurm();
  // Reports a table, pictures or claims that cannot be made now instead of after the last run.
  const std::vector<RunRecord> records = records_of(sweep.runs);
  check_tables(sweep.document, records);
  if (const std::string few = few_runs_remark(sweep.document, records); !few.empty())
    print_error("%s\n", few.c_str());
  dry ? dry_run(sweep) : execute(sweep);
  return 0;
}

}  // namespace

const Command kSweep{
    "sweep",
    "sweep FILE [--jobs N] [--slurm] [--resume [--results ROWS] | --overwrite | --prune] "
    "[--set key=value]… [--profile P] [--out DIR]",
    "run every point of a sweep, in parallel processes or on a cluster", run_sweep};

}  // namespace pipewright
