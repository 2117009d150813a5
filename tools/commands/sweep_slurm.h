// SPDX-License-Identifier: Apache-2.0
/// The part of `pipewright sweep` that concerns Slurm.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/sweep/slurm_jobs.h"
#include "tools/command.h"

namespace pipewright {

/// Declares --slurm and the options that belong to it.
void declare_slurm_options(CommandLine& line);

/// The settings from these options; nullopt without --slurm. Throws Error{Experiment} for options
/// that make no sense.
std::optional<SlurmSettings> slurm_settings(const CommandLine& line,
                                            const std::vector<PlannedRun>& runs);

/// The unfinished runs of a sweep, by whether Slurm still has them.
struct UnfinishedRuns {
  std::vector<PlannedRun> free, queued;
  std::map<std::string, RunTask> tasks;  ///< from ask_queue()

  /// A remark on queued runs: "5 runs are in the queue, see squeue --jobs=7".
  std::string queued_text() const;
};
/// Asks Slurm which of the runs it has. Throws as ask_queue() does.
UnfinishedRuns sort_by_queue(const std::vector<PlannedRun>& unfinished,
                             const std::filesystem::path& out);

/// Prints "12 runs: 5 done, 2 running, 3 pending, 1 failed, 1 missing" and the reasons of failures.
void print_states(const std::vector<PlannedRun>& runs, const std::map<std::string, RunTask>& tasks);

/// For --dry-run: prints the script to standard output and the runs of each task to standard error.
void print_array(const std::vector<PlannedRun>& runs, const std::filesystem::path& out,
                 const SlurmSettings& settings);

/// Submits the array, and prints how to watch, cancel and collect it.
void submit_sweep(const std::vector<PlannedRun>& runs, const std::filesystem::path& out,
                  const ExperimentArguments& given, const SlurmSettings& settings,
                  const FolderLock& lock);

}  // namespace pipewright
