/// One run from beginning to end: what `pipewright run` does.
#pragma once

#include <atomic>
#include <filesystem>

#include "core/experiment/experiment.h"
#include "core/runtime/processes/team.h"

namespace pipewright {

struct RunChoices {
  bool resume = false;     ///< leave a finished run alone, go on with an unfinished one
  bool overwrite = false;  ///< empty the folder first
  bool quiet = false;      ///< print nothing but errors
};

/// Trains and leaves a complete folder. A folder that holds a run already is refused without
/// `resume` or `overwrite`. Whatever goes wrong is written to run.json and thrown as Error.
void run_experiment(Experiment& experiment, const std::filesystem::path& folder,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop);

}  // namespace pipewright
