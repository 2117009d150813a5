/// Folders that belong to Pipewright, each worked in by one process at a time.
#pragma once

#include <filesystem>

#include "core/system/descriptor.h"

namespace pipewright {

/// The file that makes a folder ours. Its lock says whether somebody works there; its text says who
/// did last.
inline constexpr const char* kFolderMarker = ".pipewright";

struct FolderTerms {
  bool adopt = false;      ///< also take a folder without the marker in which other files are
  bool inherited = false;  ///< child processes keep the lock for as long as they live
};

/// Holds a folder of ours: nobody else can take it until the object is gone or this process is
/// dead. The folder is made where it is missing. One that is neither empty nor ours is not touched.
/// A file system without locks is no reason to refuse. Where nothing was written into a folder that
/// this object has marked, it takes the marker back, and the folder if there was none before.
class FolderLock {
 public:
  /// Throws Error{Experiment} when the folder is somebody else's, or when somebody works in it,
  /// with pid, host and since when; Error{Data} when it cannot be written.
  explicit FolderLock(const std::filesystem::path& folder, FolderTerms terms = {});
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  std::filesystem::path folder_;
  Descriptor marker_;
  bool made_folder_ = false, made_marker_ = false;
};

/// Whether a process that is alive holds the folder.
bool is_held(const std::filesystem::path& folder);

/// Waits until no other process has its turn in a folder, ours or not; leaves no file there. Where
/// a file system has no locks nobody waits.
class FolderTurn {
 public:
  explicit FolderTurn(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

}  // namespace pipewright
