/// The unfinished file of a download, NAME.part: grows, is checked, and becomes NAME at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace pipewright {

/// The file's md5 or SHA-256, whichever `like` has as many digits as. Throws Error{Data}.
std::string checksum_of(const std::filesystem::path& path, const std::string& like);

/// Belongs to one process at a time. What is in it stays there when this object ends.
class PartFile {
 public:
  /// Opens `target`.part, or makes it, with the folders around it. Throws Error{Data}; also if
  /// another process is at it.
  explicit PartFile(const std::filesystem::path& target);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Throw Error{Data}, when the disk is full say; what was written stays.
  void append(std::string_view bytes);
  void clear();
  /// Gives it its final name, to outlive a power cut.
  void finish();
  void remove();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path target_, path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace pipewright
