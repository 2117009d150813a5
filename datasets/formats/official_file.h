/// Files of public data sets, as their authors publish them: looked for plain and gzipped, and
/// when one is missing the user is told what it is and where to get it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipewright {

struct OfficialFile {
  std::string name;             ///< without ".gz"
  std::uint64_t size_in_bytes;  ///< unpacked
  std::string origin;           ///< whose, where to get it, checksum: ends up in an error message
};

/// True if `root` holds the file, plain or gzipped.
bool is_there(const std::filesystem::path& root, const OfficialFile& file);

/// The content of root/name, else of root/name.gz, unpacked; of exactly its official size. Throws
/// Error{Data} when both are missing, the file is damaged, or has another size.
std::string read_official(const std::filesystem::path& root, const OfficialFile& file);

/// Throws Error{Data}: the record (counted from 0) of the file has a label outside [0, classes).
[[noreturn]] void throw_bad_label(const std::filesystem::path& root, const OfficialFile& file,
                                  std::int64_t record, int label, int classes);

}  // namespace pipewright
