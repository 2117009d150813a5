/// What will be a file, until it is whole.
#pragma once

#include <filesystem>

#include "core/system/descriptor.h"

namespace pipewright {

/// A new file NAME.<process>.part beside the one it will replace. What lies there under a name that
/// is tried is not opened, and no link is followed. Unless it is renamed, it goes with this object.
class TemporaryFile {
 public:
  /// Throws Error{Data}.
  explicit TemporaryFile(const std::filesystem::path& beside);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& name() const { return name_; }
  int descriptor() const { return file_.number(); }
  /// Puts it in the place of `path`, on the same file system. Throws Error{Data}.
  void rename(const std::filesystem::path& path);

 private:
  std::filesystem::path name_;
  Descriptor file_;
  bool renamed_ = false;
};

}  // namespace pipewright
