/// Runs a sweep: each run in a process of its own, so many at once, until all are done, one
/// failure stopping nobody.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "core/sweep/sweep_plan.h"
#include "core/sweep/sweep_progress.h"
#include "core/system/folder_lock.h"

namespace pipewright {

struct SweepSettings {
  std::filesystem::path out;
  int jobs = 1;                          ///< processes at once
  bool resume = false;                   ///< leave finished runs alone
  bool overwrite = false;                ///< begin every run anew
  std::string metric = "test_accuracy";  ///< named when a run is done
  /// Set by a signal that came before the runs; may be null.
  const std::atomic<bool>* stop = nullptr;
  /// What is started, with `run FILE --out DIR --resume` and our plugins added: this very program.
  std::vector<std::string> program = {"/proc/self/exe"};
};

struct FailedRun {
  std::string title;
  std::string outcome;    ///< "exit code 3", "killed by signal 9"
  std::string last_line;  ///< of its log
  bool killed = false;    ///< by a signal: then the last line is no reason, only what came before

  std::string reason() const;  ///< both, on one line
};

struct SweepResult {
  std::size_t done = 0;  ///< now; without those that were done before
  std::vector<FailedRun> failed;
  bool interrupted = false;  ///< a signal came; what was running has saved its state
};

/// The runs that are left: all with `overwrite`, those not done with `resume`. Throws
/// Error{Experiment} when finished runs, or runs of other options, are in the way.
std::vector<PlannedRun> runs_to_do(const std::vector<PlannedRun>& runs,
                                   const SweepSettings& settings);

/// Executes `left` (of runs_to_do). A run's folder gets `log.txt` and `point.json` besides what the
/// run leaves itself. Ctrl-C, SIGTERM and SIGHUP interrupt the runs that are under way, wait for
/// them and start no others: whatever they had come to, they are interrupted and have not failed.
/// Needs the lock of the sweep's folder, which they inherit.
SweepResult run_sweep(const std::vector<PlannedRun>& left, const SweepSettings& settings,
                      SweepProgress& progress, const FolderLock& lock);

/// Runs at once when nothing is said: as many as this machine's cores can feed, at least one.
int default_jobs(const std::vector<PlannedRun>& runs);

}  // namespace pipewright
