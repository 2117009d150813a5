// SPDX-License-Identifier: Apache-2.0
/// Runs a sweep: each run in a process of its own, several at the same time. A failure does not
/// stop the others.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/sweep/sweep_plan.h"
#include "core/sweep/sweep_progress.h"
#include "core/system/folder_lock.h"

namespace pipewright {

struct SweepSettings {
  std::filesystem::path out;
  int jobs = 1;                          ///< runs at the same time
  bool resume = false;                   ///< skip finished runs
  bool overwrite = false;                ///< start every run again from the beginning
  std::string metric = "test_accuracy";  ///< shown when a run is done
  /// True if a signal came before the runs started; may be null.
  const std::atomic<bool>* stop = nullptr;
  /// The program to start with `run FILE --out DIR --resume` and our plugins; by default this one.
  std::vector<std::string> program = {"/proc/self/exe"};
  /// Performs the same arguments, without plugins, in this process and returns the exit code; must
  /// not throw. Runs on CPUs are then copies of this process, which has loaded LibTorch and the
  /// plugins already. Empty: every run starts `program`.
  std::function<int(const std::vector<std::string>&)> perform = {};
  /// The command that begins one run anew, for messages; empty: there is none.
  std::function<std::string(const PlannedRun&)> anew = {};
};

struct FailedRun {
  std::string title;
  std::string outcome;    ///< "exit code 3", "killed by signal 9"
  std::string last_line;  ///< last line of its log
  bool killed = false;    ///< by a signal, so that the last line is not the reason

  std::string reason() const;  ///< outcome and last line, on one line
};

struct SweepResult {
  std::size_t done = 0;  ///< runs finished by this call
  std::vector<FailedRun> failed;
  bool interrupted = false;  ///< a signal came; the runs in progress have been interrupted
};

/// Locks the folder as long as the result, or a child process started meanwhile, lives, so that
/// nobody else starts or submits the same runs. Besides the folders that FolderLock accepts it
/// accepts one that contains only run folders of ours and their profiles, as `run --point` leaves
/// it. Throws as FolderLock does.
FolderLock claim_sweep(const std::filesystem::path& folder);

/// The runs that are left to do: all with `overwrite`, the unfinished ones with `resume`. Throws
/// Error{Experiment} if folders have finished runs, or runs with other options.
std::vector<PlannedRun> runs_to_do(const std::vector<PlannedRun>& runs,
                                   const SweepSettings& settings);

/// Performs `left` (from runs_to_do()). Besides the run's own files, `log.txt` and `point.json` are
/// written to its folder. On Ctrl-C, SIGTERM and SIGHUP it interrupts the runs in progress, waits
/// for them and starts no others; these runs count as interrupted, not as failed. Runs inherit the
/// lock of the sweep's folder.
SweepResult run_sweep(const std::vector<PlannedRun>& left, const SweepSettings& settings,
                      SweepProgress& progress, const FolderLock& lock);

/// Default of SweepSettings::jobs: this machine's cores divided by those of the largest run, at
/// least one.
int default_jobs(const std::vector<PlannedRun>& runs);

}  // namespace pipewright
