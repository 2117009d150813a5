// SPDX-License-Identifier: Apache-2.0
/// Folders that belong to Pipewright, each worked in by one process at a time.
#pragma once

#include <filesystem>

#include "core/system/descriptor.h"

namespace pipewright {

/// The marker: a file that makes a folder ours. A lock on it says that a process works there now;
/// its text names the process that worked there last.
inline constexpr const char* kFolderMarker = ".pipewright";

struct FolderTerms {
  bool adopt = false;      ///< also take a folder that has files but no marker
  bool inherited = false;  ///< child processes inherit the lock and hold it while they live
};

/// Locks a folder of ours until the object is destroyed or this process ends. A missing folder is
/// created. A folder that has files but no marker is refused (see FolderTerms::adopt). On a file
/// system without locks nothing is locked, and nobody is refused for it. The destructor removes a
/// marker that this object created, and the folder if it created that, provided that no other file
/// was put there.
class FolderLock {
 public:
  /// Throws Error{Experiment} when the folder is not ours, or when another process works in it (the
  /// message has its pid, its host and since when); Error{Data} when the folder cannot be written.
  explicit FolderLock(const std::filesystem::path& folder, FolderTerms terms = {});
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  std::filesystem::path folder_;
  Descriptor marker_;
  bool made_folder_ = false, made_marker_ = false;
};

/// Whether some process holds the lock of the folder.
bool is_held(const std::filesystem::path& folder);
/// Whether certainly no process holds it: there is no marker, or it can be locked and names a
/// process of this host, because some file systems show a lock to one host only. On a file system
/// without locks, and where the marker may not be read, neither this nor is_held() is true.
bool is_free(const std::filesystem::path& folder);

/// A lock on any folder, ours or not, for a short turn of work in it. The constructor waits until
/// no other process has its turn; no file is left behind. Without locks in the file system it does
/// not wait.
class FolderTurn {
 public:
  explicit FolderTurn(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

}  // namespace pipewright
