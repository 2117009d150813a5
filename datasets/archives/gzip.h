// SPDX-License-Identifier: Apache-2.0
/// Reads gzip files (RFC 1952), in pieces or as a whole. They are unpacked with zlib, because
/// libarchive does not verify the checksum at their end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace pipewright {

/// A stream of the unpacked content of a gzip file (of all its members). Any other file is read
/// unchanged.
class GzipStream {
 public:
  /// Throws Error{Data} with the file's name if it cannot be opened.
  explicit GzipStream(const std::filesystem::path& path);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  bool is_packed() const;           ///< whether it is gzip, by its first bytes
  std::uint64_t file_size() const;  ///< packed, in bytes
  /// Reads up to `count` bytes and returns their number, which is smaller only at the end; the
  /// checksum has been verified then. Throws Error{Data} with the file's name if the file is
  /// truncated, damaged, or has other bytes behind the gzip data.
  std::uint64_t read(char* out, std::uint64_t count);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

/// Returns the unpacked content of a gzip file (of all its members). Throws Error{Data} with the
/// file's name if the file is missing, no gzip file, truncated or damaged, has other bytes behind
/// the gzip data, or unpacks to more than `limit_in_bytes`; it never takes memory for more.
std::string read_gzip(const std::filesystem::path& path, std::uint64_t limit_in_bytes);

}  // namespace pipewright
