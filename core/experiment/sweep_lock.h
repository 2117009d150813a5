/// One sweep at a time in a folder.
#pragma once

#include <filesystem>

namespace pipewright {

/// Holds the folder's lock file. Child processes inherit it: as long as one of them lives, even
/// without us, the folder is taken. Creates the folder.
class SweepLock {
 public:
  /// Throws Error{Experiment} when the folder is taken, Error{Data} when it cannot be written.
  explicit SweepLock(const std::filesystem::path& folder);
  ~SweepLock();
  SweepLock(const SweepLock&) = delete;
  SweepLock& operator=(const SweepLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace pipewright
