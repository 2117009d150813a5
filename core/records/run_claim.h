// SPDX-License-Identifier: Apache-2.0
/// Claims: locks on run folders, and which folders a run may work in.
#pragma once

#include "core/records/run_folder.h"
#include "core/system/folder_lock.h"

namespace pipewright {

struct ClaimTerms {
  bool resume = false, overwrite = false;  ///< options of the command line
};

/// Locks the folder as long as the result lives, and removes unfinished files of killed processes.
/// With `resume` or `overwrite` it may be the folder of a run before version 0.4, which has no
/// marker. Throws Error{Experiment} if the folder is not ours or another process works in it, if
/// something other than a file has one of our names (with `overwrite` a run's own files may be
/// links, because clear() removes these), or if `overwrite` would delete a file that this command
/// reads. Throws Error{Data} if the folder cannot be written.
FolderLock claim(const RunFolder& folder, const ClaimTerms& terms);

/// The state that RunFolder::state() gives, but also "missing" if run.json was not written by a run
/// of ours. Throws only Error{Data}.
std::string recorded_state(const RunFolder& folder);

}  // namespace pipewright
