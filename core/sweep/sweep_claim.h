// SPDX-License-Identifier: Apache-2.0
/// Locks the folder of a sweep.
#pragma once

#include <filesystem>

#include "core/system/folder_lock.h"

namespace pipewright {

/// Locks the folder as long as the result, or a child process started meanwhile, lives, so that
/// nobody else starts or submits the same runs. Besides the folders that FolderLock accepts it
/// accepts one that contains only run folders of ours and their profiles, as `run --point` leaves
/// it. Throws as FolderLock does.
FolderLock claim_sweep(const std::filesystem::path& folder);

}  // namespace pipewright
