/// The job arrays of a sweep: submitting them, and asking Slurm how far they are.
///
///   <sweep>/slurm/<n>/array.sh     what was submitted; never changed afterwards
///                     points.tsv   which task does which run
///                     sbatch.log   what sbatch said
///                     job          the job's number, from it
///                     task-<t>.log what a task printed besides its runs' logs
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

/// What has become of a run's newest task.
struct RunTask {
  enum class State { Pending, Running, Over } state = State::Over;
  std::string job;
  int task = 0;
};

/// The newest task of each of these unfinished runs that was ever submitted, by the run folder's
/// name. A task counts as running until all its runs have ended. Throws Error{Worker} when Slurm
/// does not answer: a run that may be in the queue must not be started.
std::map<std::string, RunTask> ask_queue(const std::vector<PlannedRun>& unfinished,
                                         const std::filesystem::path& sweep_folder);

/// The folder, absolute, that the sweep's next array gets. It is not made.
std::filesystem::path next_array_folder(const std::filesystem::path& sweep_folder);

/// Throws Error{Experiment} where there is no sbatch.
void check_slurm();

/// Readies the run folders, writes the array into `folder` (of next_array_folder) and submits it.
/// Returns the job's number. The caller has made sure that none of the runs is in the queue, and
/// holds the lock since. Ctrl-C is passed on to sbatch, and counts only if that has not submitted.
/// Throws Error{Experiment} with what sbatch objects to, and then leaves no array behind.
std::string submit_array(const std::vector<PlannedRun>& runs, const std::filesystem::path& folder,
                         const SlurmSettings& settings, const FolderLock& lock);

}  // namespace pipewright
