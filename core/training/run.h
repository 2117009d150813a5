// SPDX-License-Identifier: Apache-2.0
/// One run from beginning to end, as `pipewright run` performs it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/runtime/team.h"

namespace pipewright {

struct RunChoices {
  bool resume = false;     ///< continue an unfinished run, leave a finished one alone
  bool overwrite = false;  ///< empty the folder first
  bool quiet = false;      ///< print nothing but errors
  std::vector<std::string> command = {};  ///< that the run was started with, for run.json
  /// Reports an error in the place of the run's own thread, if that does not react to it; null:
  /// prints it.
  std::function<void(const Error&)> report = nullptr;
};

/// Trains and writes a complete run folder. Refuses a folder that has a run already, unless
/// `resume` or `overwrite` is set. Every failure is recorded in run.json and thrown as Error.
void run_experiment(const Experiment& experiment, const std::filesystem::path& folder,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop);

}  // namespace pipewright
