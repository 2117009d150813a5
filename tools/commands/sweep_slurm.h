/// The part of `pipewright sweep` that has to do with Slurm.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/sweep/slurm_jobs.h"
#include "tools/command.h"

namespace pipewright {

/// --slurm and what goes with it.
void declare_slurm_options(CommandLine& line);

/// nullopt without --slurm. Throws Error{Experiment} for options that make no sense.
std::optional<SlurmSettings> slurm_settings(const CommandLine& line,
                                            const std::vector<PlannedRun>& runs);

/// The unfinished runs of a sweep, by whether Slurm still has them.
struct UnfinishedRuns {
  std::vector<PlannedRun> free, queued;
  std::map<std::string, RunTask> tasks;  ///< of ask_queue

  /// "5 runs are in the queue, see squeue --jobs=7"
  std::string queued_text() const;
};
UnfinishedRuns sort_by_queue(const std::vector<PlannedRun>& unfinished,
                             const std::filesystem::path& out);

/// "12 runs: 5 done, 2 running, 3 pending, 1 failed, 1 missing", and why those have failed.
void print_states(const std::vector<PlannedRun>& runs, const std::map<std::string, RunTask>& tasks);

/// --dry-run: the script to stdout, what each task would do to stderr.
void print_array(const std::vector<PlannedRun>& runs, const std::filesystem::path& out,
                 const SlurmSettings& settings);

/// Submits, and says how to watch, cancel and collect.
void submit_sweep(const std::vector<PlannedRun>& runs, const std::filesystem::path& out,
                  const ExperimentArguments& given, const SlurmSettings& settings,
                  const FolderLock& lock);

}  // namespace pipewright
