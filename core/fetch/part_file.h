// SPDX-License-Identifier: Apache-2.0
/// The unfinished file of a download, NAME.part, which becomes NAME by an atomic rename.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/system/descriptor.h"

namespace pipewright {

/// Locked by one process at a time. The file stays when this object is destroyed.
class PartFile {
 public:
  /// Opens or creates `target`.part, and the folders above it. Throws Error{Data}, also if another
  /// process has it locked.
  explicit PartFile(const std::filesystem::path& target);
  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// append() and clear() throw Error{Data}, for example if the disk is full. Written bytes stay.
  void append(std::string_view bytes);
  void clear();
  /// Syncs the file and renames it to its final name.
  void finish();
  void remove();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path target_, path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace pipewright
