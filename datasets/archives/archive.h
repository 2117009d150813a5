// SPDX-License-Identifier: Apache-2.0
/// Archives of data sets, read from beginning to end without unpacking them to disk: tar (ustar,
/// pax and GNU's long names), plain or gzipped, and zip with files stored or deflated.
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

/// All members throw Error{Data} naming the archive, and the member where there is one, when the
/// archive is missing, truncated or damaged (checksums are verified: of every header of a tar, of
/// the whole of a gzipped archive once next() is false, of each file of a zip that is read), or
/// holds what no data set needs: links, devices, encrypted files, names that lead out of the
/// archive.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::filesystem::path& archive);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  /// Goes to the next file, past folders. False at the end of the archive.
  bool next();
  const std::string& name() const;  ///< with '/', without a leading "./"
  std::uint64_t size() const;       ///< in bytes, unpacked, as the archive states it
  /// The file's bytes; once for each file. Refuses files of more than `limit_in_bytes`.
  std::string content(std::uint64_t limit_in_bytes);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace pipewright
