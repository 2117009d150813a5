// SPDX-License-Identifier: Apache-2.0
/// Files for readers that want a path.
#pragma once

#include <filesystem>
#include <string_view>

namespace pipewright::fuzz {

/// A file in memory. Its path opens as any plain file does, and stays the same.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content.
  const std::filesystem::path& holding(std::string_view content);

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// A folder of its own, in memory where there is /dev/shm; it goes when the program ends well.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Removes all that is in it.
  void clear() const;
  void write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace pipewright::fuzz
