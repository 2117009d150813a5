// SPDX-License-Identifier: Apache-2.0
/// The states of the runs in a folder, as their files say, for somebody who watches a sweep of
/// another process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

struct WatchedRun {
  std::string folder;  ///< its name, which no other run of the sweep has
  std::string name;    ///< that of the folder without the digest, unless another run has it, too
  std::string state;   ///< done, failed, interrupted (or killed), running or waiting
  double share = 0;    ///< of its mini-batches that it has trained, while it is running
  std::string error;   ///< why it failed
};

struct WatchedSweep {
  std::vector<WatchedRun> runs;  ///< in the order of their names
  bool at_work = false;          ///< some process works in the folder, or in that of a run

  std::size_t count(const std::string& state) const;
};

/// Looks at the runs of a sweep's folder, or at the one run whose folder it is. Throws
/// Error{Experiment} if there is no such folder, or no run in it and nobody at work.
WatchedSweep look_at(const std::filesystem::path& folder);

/// "12 done, 1 failed, 2 running (gpipe-2 40 %, xpipe-2)": one line.
std::string state_text(const WatchedSweep& sweep);

/// The changes since another look at the same folder, a line for each run.
std::vector<std::string> changes_since(const WatchedSweep& before, const WatchedSweep& now);

}  // namespace pipewright
