/// Files of public data sets, as their authors publish them: looked for plain, gzipped and in the
/// archive they come in; when one is missing the user is told what it is and where to get it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/archives/file_tree.h"

namespace pipewright {

struct OfficialFile {
  std::string name;             ///< without ".gz"
  std::uint64_t size_in_bytes;  ///< unpacked
  std::string origin;           ///< whose, where to get it, checksum: ends up in an error message
  std::string dataset;          ///< its registered name, for `pipewright fetch`; may be empty
  std::uint64_t record_in_bytes = 0;  ///< > 0: any whole number of them is a file, up to that size
};

/// True if `root` holds the file, plain or gzipped.
bool is_there(const std::filesystem::path& root, const OfficialFile& file);

/// The content of root/name, else of root/name.gz, unpacked; of exactly its official size, or of
/// whole records. Throws Error{Data} when both are missing, the file is damaged, or has another
/// size.
std::string read_official(const std::filesystem::path& root, const OfficialFile& file);

/// Files that lie in a folder, or in the archive (.tar.gz) that their authors pack them in: the
/// archive may be in that folder, or be the `root` itself. It is read once, as a whole.
class OfficialFiles {
 public:
  /// `all`: what may be asked for. Throws Error{Data} for a damaged archive.
  OfficialFiles(std::filesystem::path root, std::string archive,
                const std::vector<OfficialFile>& all);

  bool holds(const OfficialFile& file) const;
  /// As read_official(); once for each file.
  std::string read(const OfficialFile& file);
  /// Where the file is, for errors about what is in it.
  std::filesystem::path place_of(const OfficialFile& file) const;

 private:
  std::filesystem::path root_;
  std::string archive_name_;
  std::filesystem::path archive_;  // empty: none is needed, or none is there
  FileTree packed_;
};

/// Throws Error{Data}: the record (counted from 0) of the file at `place` has a label outside
/// [0, classes).
[[noreturn]] void throw_bad_label(const std::filesystem::path& place, std::int64_t record,
                                  int label, int classes);
[[noreturn]] void throw_bad_label(const std::filesystem::path& root, const OfficialFile& file,
                                  std::int64_t record, int label, int classes);

}  // namespace pipewright
