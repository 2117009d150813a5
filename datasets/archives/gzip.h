// SPDX-License-Identifier: Apache-2.0
/// Gzip files (RFC 1952), piece by piece or as whole values. zlib unpacks them, for libarchive does
/// not verify the checksum at their end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace pipewright {

/// The unpacked content of a gzip file, of all members where there are several; any other file is
/// read as it is.
class GzipStream {
 public:
  /// Throws Error{Data} naming the file when it cannot be opened.
  explicit GzipStream(const std::filesystem::path& path);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  bool is_packed() const;           ///< as gzip, by its first bytes
  std::uint64_t file_size() const;  ///< in bytes, packed
  /// How many of `count` bytes there were: fewer only at the end, where the checksum has been
  /// verified. Throws Error{Data} naming the file when it is truncated, damaged, or followed by
  /// other bytes.
  std::uint64_t read(char* out, std::uint64_t count);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

/// The unpacked content, of all members where there are several; checksums are verified. Throws
/// Error{Data} naming the file when it is missing, no gzip file, truncated, damaged, followed by
/// other bytes, or unpacks to more than `limit_in_bytes`, beyond which no memory is taken.
std::string read_gzip(const std::filesystem::path& path, std::uint64_t limit_in_bytes);

}  // namespace pipewright
