/// Zip archives of less than 4 GiB, with files stored or deflated; used as a TarReader is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/system/input_file.h"

namespace pipewright {

/// All members throw Error{Data} naming the archive, and the member where there is one, when the
/// archive is missing, truncated or damaged (each file's checksum is verified), encrypted, or
/// packed in another way.
class ZipReader {
 public:
  explicit ZipReader(const std::filesystem::path& archive);

  /// Goes to the next file of the archive's directory, past folders.
  bool next();
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  /// The file's bytes. Refuses files of more than `limit_in_bytes`.
  std::string content(std::uint64_t limit_in_bytes);

 private:
  std::string bytes_at(std::uint64_t offset, std::uint64_t count);
  void read_directory();
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path archive_;
  InputFile file_;
  std::string directory_;  // records of all files
  std::size_t position_ = 0;
  std::string name_;
  std::uint64_t method_ = 0, checksum_ = 0, packed_size_ = 0, size_ = 0, header_offset_ = 0;
};

/// True if the file begins as zip archives do.
bool is_zip(const std::filesystem::path& path);

}  // namespace pipewright
