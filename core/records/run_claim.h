/// Which folders a run may work in, and by whom.
#pragma once

#include "core/records/run_folder.h"
#include "core/system/folder_lock.h"

namespace pipewright {

struct ClaimTerms {
  bool resume = false, overwrite = false;  ///< what the user has asked for
};

/// Takes the folder for as long as the result lives, and removes what a killed process was writing.
/// With `resume` or `overwrite` it may be the folder of a run of before 0.4, which has no marker.
/// Throws Error{Experiment} when the folder is not ours or is being worked in, when something else
/// than a file has the name of one of ours (with `overwrite`, links do no harm: clear() removes
/// them), or when `overwrite` would delete a file that this command was given to read; Error{Data}
/// when it cannot be written.
FolderLock claim(const RunFolder& folder, const ClaimTerms& terms);

/// As RunFolder::state(), but "missing" also where run.json is not one that a run of ours has
/// written. Throws Error{Data} only.
std::string recorded_state(const RunFolder& folder);

}  // namespace pipewright
