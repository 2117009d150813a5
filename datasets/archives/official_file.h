// SPDX-License-Identifier: Apache-2.0
/// Files of public data sets as their authors publish them. They are looked for plain, gzipped and
/// in their archive. If one is missing, the error says what it is and where to get it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/archives/file_tree.h"

namespace pipewright {

struct OfficialFile {
  std::string name;                   ///< without ".gz"
  std::uint64_t size_in_bytes;        ///< unpacked
  std::string origin;                 ///< owner, source and checksum, for error messages
  std::string dataset;                ///< registered name, for `pipewright fetch`; may be empty
  std::uint64_t record_in_bytes = 0;  ///< > 0: a file may have fewer records
};

/// Whether `root` holds the file, plain or gzipped.
bool is_there(const std::filesystem::path& root, const OfficialFile& file);

/// Reads root/name, or else unpacks root/name.gz. Throws Error{Data} if both are missing, the file
/// is damaged, or its size is not the official one (with record_in_bytes: not a whole number of
/// records up to it).
std::string read_official(const std::filesystem::path& root, const OfficialFile& file);

/// Official files that lie in a folder or in their authors' archive (.tar.gz), which may lie in
/// that folder or be `root` itself. The archive is read once, as a whole.
class OfficialFiles {
 public:
  /// `all` lists the files that may be read. Throws Error{Data} for a damaged archive.
  OfficialFiles(std::filesystem::path root, std::string archive,
                const std::vector<OfficialFile>& all);

  bool holds(const OfficialFile& file) const;
  /// Reads a file like read_official(); may be called once per file.
  std::string read(const OfficialFile& file);
  /// The path of the file, for errors about its content.
  std::filesystem::path place_of(const OfficialFile& file) const;

 private:
  std::filesystem::path root_;
  std::string archive_name_;
  std::filesystem::path archive_;  // empty: there is none, or it is not needed
  FileTree packed_;
};

/// Throws Error{Data}, which says that the record (counted from 0) of the file at `place` has a
/// label outside [0, classes).
[[noreturn]] void throw_bad_label(const std::filesystem::path& place, std::int64_t record,
                                  int label, int classes);
[[noreturn]] void throw_bad_label(const std::filesystem::path& root, const OfficialFile& file,
                                  std::int64_t record, int label, int classes);

}  // namespace pipewright
