// SPDX-License-Identifier: Apache-2.0
/// Reads archives of data sets from beginning to end without unpacking them to disk: tar (ustar,
/// pax and GNU's long names), plain or gzipped, and zip with stored or deflated files.
///
///   ArchiveReader archive(path);
///   while (archive.next())
///     if (wanted(archive.name())) use(archive.content(limit));
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace pipewright {

/// Reads one archive. All functions throw Error{Data}, naming the archive and, if there is one, the
/// member, if the archive is missing, truncated or damaged, or contains what no data set needs:
/// links, devices, encrypted files, names that lead out of the archive. Checksums are verified:
/// those of all tar headers, that of a gzipped archive once next() returns false, and those of all
/// zip members that are read.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::filesystem::path& archive);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  /// Advances to the next file and skips folders. Returns false at the end of the archive.
  bool next();
  const std::string& name() const;  ///< path with '/', without a leading "./"
  std::uint64_t size() const;       ///< unpacked, in bytes, as the archive states it
  /// Reads the file's bytes; may be called once per file. Throws for files of more than
  /// `limit_in_bytes`.
  std::string content(std::uint64_t limit_in_bytes);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace pipewright
