// SPDX-License-Identifier: Apache-2.0
/// A temporary file that is renamed once it is complete.
#pragma once

#include <filesystem>

#include "core/system/descriptor.h"

namespace pipewright {

/// A new file NAME.<pid>.part beside the file that it will replace. An existing file of that name
/// is not opened, links are not followed, and another name is tried. The destructor deletes it
/// unless it was renamed.
class TemporaryFile {
 public:
  /// Throws Error{Data}.
  explicit TemporaryFile(const std::filesystem::path& beside);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& name() const { return name_; }
  int descriptor() const { return file_.number(); }
  /// Renames it to `path`, which must be on the same file system, and replaces what is there.
  /// Throws Error{Data}.
  void rename(const std::filesystem::path& path);

 private:
  std::filesystem::path name_;
  Descriptor file_;
  bool renamed_ = false;
};

}  // namespace pipewright
