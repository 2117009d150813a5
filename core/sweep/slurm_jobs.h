// SPDX-License-Identifier: Apache-2.0
/// The job arrays of a sweep: submits them and asks Slurm for their states.
///
///   <sweep>/slurm/<n>/array.sh     what was submitted; never changed afterwards
///                     points.tsv   which task performs which run
///                     sbatch.log   output of sbatch
///                     job          the job's number, read from sbatch.log
///                     task-<t>.log output of a task outside of its runs' logs
///
/// Tasks write nothing but their run folders, so that no file has two writers.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/sweep/slurm_array.h"
#include "core/system/folder_lock.h"

namespace pipewright {

/// The state of a run's newest task.
struct RunTask {
  enum class State { Pending, Running, Over } state = State::Over;
  std::string job;
  int task = 0;
};

/// The newest task of each unfinished run that was ever submitted, keyed by the run folder's name.
/// A task counts as running until all its runs have ended. Throws Error{Worker} if Slurm does not
/// answer, because a run that may be in the queue must not be started.
std::map<std::string, RunTask> ask_queue(const std::vector<PlannedRun>& unfinished,
                                         const std::filesystem::path& sweep_folder);

/// The absolute path of the folder for the sweep's next array. It is not created.
std::filesystem::path next_array_folder(const std::filesystem::path& sweep_folder);

/// Throws Error{Experiment} if there is no sbatch.
void check_slurm();

/// Prepares the run folders, writes the array into `folder` (from next_array_folder()) and submits
/// it. Returns the job's number. The caller must have checked that none of the runs is in the queue
/// and hold the lock since then. Ctrl-C is passed on to sbatch, and has an effect only if sbatch
/// has not submitted the job. Throws Error{Experiment} with the message of sbatch, and then removes
/// the array.
std::string submit_array(const std::vector<PlannedRun>& runs, const std::filesystem::path& folder,
                         const SlurmSettings& settings, const FolderLock& lock);

}  // namespace pipewright
