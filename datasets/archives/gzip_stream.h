/// Gzip files (RFC 1952) read from beginning to end, piece by piece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace pipewright {

/// The unpacked content of a gzip file, of all members where there are several; any other file is
/// read as it is. (zlib's own gzread() gives no error for some files with a wrong checksum.)
class GzipStream {
 public:
  /// Throws Error{Data} naming the file when it cannot be opened.
  explicit GzipStream(const std::filesystem::path& path);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  /// How many of `count` bytes there were: fewer only at the end, where the checksum has been
  /// verified. Throws Error{Data} naming the file when it is truncated, damaged, or followed by
  /// other bytes.
  std::uint64_t read(char* out, std::uint64_t count);

 private:
  struct State;

  bool refill();
  bool next_member();

  std::unique_ptr<State> state_;
};

}  // namespace pipewright
