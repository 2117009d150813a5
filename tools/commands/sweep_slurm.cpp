// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/sweep_slurm.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/system/terminal.h"
#include "tools/results.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOnlyWithSlurm[] = {"points-per-task", "sbatch", "dry-run"};

void check_sbatch_option(const std::string& option) {
  const auto refuse = [&](const char* expected) {
    throw Error(ErrorKind::Experiment, concat("--sbatch is '", option, "'; expected ", expected));
  };
  if (!option.starts_with('-') || option.find_first_of("\r\n") != std::string::npos)
    refuse("options of sbatch on one line, such as '--partition=gpu --time=1:00:00'");
  if (option.find("--array") != std::string::npos)
    refuse("no --array: it follows from the sweep; --jobs limits the tasks at once");
}

int at_least_one(const CommandLine& line, const std::string& option) {
  const int value = line.integer(option);
  if (value < 1)
    throw Error(ErrorKind::Experiment,
                concat("--", option, " is ", value, "; expected at least 1"));
  return value;
}

/// The state of a run, from its folder and from its task, if it has one.
std::string state_of(const PlannedRun& run, const RunOutcome& record,
                     const std::map<std::string, RunTask>& tasks) {
  if (record.done()) return "done";
  const auto task = tasks.find(run.folder.filename().string());
  if (task != tasks.end() && task->second.state == RunTask::State::Pending) return "pending";
  if (task != tasks.end() && task->second.state == RunTask::State::Running) return "running";
  return record.state == "running" ? "interrupted"
                                   : record.state;  // killed before it could record its end
}

}  // namespace

void declare_slurm_options(CommandLine& line) {
  line.flag("slurm",
            "submit the runs as a job array of Slurm instead of running them here; --jobs then is "
            "the number of tasks at once, default: no limit");
  line.option("points-per-task", "N",
              "with --slurm: runs that a task of the array takes, in turn; default: 1");
  line.list("sbatch", "OPTIONS",
            "with --slurm: options of sbatch's own, such as '--partition=gpu --time=1:00:00'");
  line.flag("dry-run", "with --slurm: print the batch script; write and submit nothing");
}

std::optional<SlurmSettings> slurm_settings(const CommandLine& line,
                                            const std::vector<PlannedRun>& runs) {
  if (!line.given("slurm")) {
    for (const char* option : kOnlyWithSlurm)
      if (line.given(option))
        throw Error(ErrorKind::Experiment,
                    concat("--", std::string_view(option), " is for clusters and needs --slurm"));
    return std::nullopt;
  }
  SlurmSettings settings;
  settings.name = runs.front().resolved.find_path("name")->text;
  settings.program = fs::read_symlink("/proc/self/exe");
  if (line.given("points-per-task"))
    settings.points_per_task = at_least_one(line, "points-per-task");
  if (line.given("jobs")) settings.tasks_at_once = at_least_one(line, "jobs");
  settings.options = line.texts("sbatch");
  for (const std::string& option : settings.options) check_sbatch_option(option);
  return settings;
}

std::string UnfinishedRuns::queued_text() const {
  std::set<std::string> jobs;
  for (const PlannedRun& run : queued) jobs.insert(tasks.at(run.folder.filename().string()).job);
  return concat(counted(queued.size(), "run"), queued.size() == 1 ? " is" : " are",
                " in the queue, see squeue --jobs=",
                join(std::vector<std::string>(jobs.begin(), jobs.end()), ","));
}

UnfinishedRuns sort_by_queue(const std::vector<PlannedRun>& unfinished, const fs::path& out) {
  UnfinishedRuns sorted;
  sorted.tasks = ask_queue(unfinished, out);
  for (const PlannedRun& run : unfinished) {
    const auto task = sorted.tasks.find(run.folder.filename().string());
    const bool over = task == sorted.tasks.end() || task->second.state == RunTask::State::Over;
    (over ? sorted.free : sorted.queued).push_back(run);
  }
  return sorted;
}

void print_states(const std::vector<PlannedRun>& runs,
                  const std::map<std::string, RunTask>& tasks) {
  std::map<std::string, int> counts;
  std::string failures;
  for (const PlannedRun& run : runs) {
    const RunOutcome record = read_outcome(run.folder);
    const std::string state = state_of(run, record, tasks);
    ++counts[state];
    if (state == "failed") failures += concat("  ", run.title, " failed: ", record.error, "\n");
  }
  std::vector<std::string> texts;
  for (const char* state : {"done", "running", "pending", "interrupted", "failed", "missing"})
    if (counts[state] > 0) texts.push_back(concat(counts[state], " ", std::string_view(state)));
  print_error("%s: %s\n%s", counted(runs.size(), "run").c_str(), join(texts, ", ").c_str(),
              failures.c_str());
}

void print_array(const std::vector<PlannedRun>& runs, const fs::path& out,
                 const SlurmSettings& settings) {
  if (runs.empty()) return;
  const fs::path folder = next_array_folder(out);
  print("%s", array_script(runs, folder, settings).c_str());
  std::fflush(stdout);
  for (const ArrayPoint& point : array_points(runs, settings.points_per_task))
    print_error("task %d: %s\n", point.task, point.title.c_str());
}

void submit_sweep(const std::vector<PlannedRun>& runs, const fs::path& out,
                  const ExperimentArguments& given, const SlurmSettings& settings,
                  const FolderLock& lock) {
  const fs::path folder = next_array_folder(out);
  const std::string job = submit_array(runs, folder, settings, lock);
  const int tasks = array_points(runs, settings.points_per_task).back().task;
  print_error(
      "job %s: %s in %s, see %s\n"
      "watch:    squeue --jobs=%s\n"
      "cancel:   scancel %s\n"
      "collect:  %s\n"
      "          goes on here with what the cluster has left; with --slurm, there\n",
      job.c_str(), counted(runs.size(), "run").c_str(), counted(tasks, "task").c_str(),
      (folder / "array.sh").c_str(), job.c_str(), job.c_str(),
      command_with("sweep", given, "--resume").c_str());
}

}  // namespace pipewright
