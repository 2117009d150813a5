/// Tar archives (POSIX ustar with pax and GNU long names), plain or gzipped, read from beginning to
/// end without unpacking them to disk.
///
///   TarReader archive(path);
///   while (archive.next())
///     if (wanted(archive.name())) use(archive.content(limit));
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "datasets/archives/gzip_stream.h"

namespace pipewright {

/// All members throw Error{Data} naming the archive, and the member where there is one, when the
/// archive is missing, truncated or damaged (checksums are verified: of every header, and of the
/// whole of a gzipped archive once next() is false), or holds what no data set needs: links,
/// devices, names that lead out of the archive.
class TarReader {
 public:
  explicit TarReader(const std::filesystem::path& archive);

  /// Goes to the next file, past folders. False at the end of the archive.
  bool next();
  const std::string& name() const { return name_; }  ///< with '/', without a leading "./"
  std::uint64_t size() const { return size_; }
  /// The file's bytes; once for each file. Refuses files of more than `limit_in_bytes`.
  std::string content(std::uint64_t limit_in_bytes);

 private:
  struct Header;

  bool read_header(Header& header);
  std::string extension_text(const Header& header);
  void take_pax(const std::string& records);
  void accept(const Header& header);
  void skip_rest();
  void read_to_end();
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path archive_;
  GzipStream input_;
  std::string name_, long_name_;  // the latter from an extension, for the next file
  std::uint64_t size_ = 0, long_size_ = 0;
  bool has_long_size_ = false;
  std::uint64_t unread_ = 0;  // bytes of the current file and its filling
};

}  // namespace pipewright
