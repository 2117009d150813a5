/// Which folders a sweep may work in.
#pragma once

#include <filesystem>

#include "core/system/folder_lock.h"

namespace pipewright {

/// Takes the folder for as long as the result or a process that is started meanwhile lives: nobody
/// else starts or submits the same runs. Besides what FolderLock takes it takes a folder in which
/// there is nothing but run folders of ours and profiles measured for them, as `run --point` leaves
/// it. Throws as FolderLock.
FolderLock claim_sweep(const std::filesystem::path& folder);

}  // namespace pipewright
