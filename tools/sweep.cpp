// `pipewright sweep`: every run of an experiment's sweep, each in a process of its own.
#include <unistd.h>

#include <cstdio>

#include "core/base/error.h"
#include "core/experiment/run_store.h"
#include "core/experiment/sweep_runner.h"
#include "core/experiment/table.h"
#include "tools/command.h"
#include "tools/results.h"

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
  if (settings.resume && settings.overwrite)
    throw Error(ErrorKind::Experiment, "--resume and --overwrite exclude each other");
  if (settings.jobs < 1)
    throw Error(ErrorKind::Experiment,
                concat("--jobs is ", settings.jobs, "; expected at least 1"));
  return settings;
}

/// One line per failed run, as the error the command ends with.
void throw_if_failed(const SweepResult& result, std::size_t all) {
  if (result.failed.empty()) return;
  std::string text = concat(result.failed.size(), " of ", all, " runs failed:");
  for (const FailedRun& run : result.failed) text += concat("\n  ", run.title, ": ", run.reason());
  throw Error(ErrorKind::Sweep,
              text + "\nlog.txt in a run's folder says more; --resume tries them again");
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSweep,
      "Runs every point of the experiment's `sweep`, each in a process and a folder of its own. "
      "All "
      "points are checked before the first one starts. A run that fails does not stop the others: "
      "the command then ends with exit code 7 and a line for each of them. At the end the folder "
      "has results.sqlite, and the `table` of the file is printed. Ctrl-C lets the runs under way "
      "save their state; --resume goes on with them.");
  line.experiment(true);
  line.option("jobs", "N",
              "runs at once; default: cores / (pipeline.threads × workers that are threads)");
  line.flag("keep-going", "go on when a run fails; this is always so");
  line.flag("resume", "leave finished runs alone, go on with the others");
  line.flag("overwrite", "begin every run anew");
  if (!line.parse(arguments)) return 0;

  const ExperimentArguments given = line.experiment_arguments();
  const Value document = given.document();
  const std::vector<PlannedRun> runs = plan_sweep(document, results_folder(given, document));
  const SweepSettings settings = settings_of(line, document, runs);
  // A table that cannot be made is better known now than after the last run.
  if (document.find("table") != nullptr)
    make_table(read_table_spec(document), sweep_records(document, settings.out));
  const std::vector<PlannedRun> left = runs_to_do(runs, settings);
  const std::size_t before = runs.size() - left.size();
  if (before > 0) std::fprintf(stderr, "%zu of %zu runs are done already\n", before, runs.size());
  SweepResult result;
  {
    SweepProgress progress(stderr, ::isatty(STDERR_FILENO) != 0, runs.size(), before);
    result = run_sweep(left, settings, progress);
  }
  rebuild_run_store(settings.out);
  if (result.interrupted)
    throw Error(ErrorKind::Interrupted,
                concat("interrupted with ", before + result.done, " of ", runs.size(),
                       " runs done; the same command with --resume goes on"));
  if (document.find("table") != nullptr) print_results(document, settings.out);
  std::fprintf(stderr, "%zu of %zu runs done, see %s\n", before + result.done, runs.size(),
               (settings.out / "results.sqlite").c_str());
  throw_if_failed(result, runs.size());
  return 0;
}

}  // namespace

const Command kSweep{
    "sweep",
    "sweep FILE [--jobs N] [--resume | --overwrite] [--set key=value]… [--profile P] [--out DIR]",
    "run every point of a sweep, in parallel processes", run};

}  // namespace pipewright
