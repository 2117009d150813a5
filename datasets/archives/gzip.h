/// Gzip files (RFC 1952) as whole values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace pipewright {

/// The unpacked content, of all members where there are several; checksums are verified. Throws
/// Error{Data} naming the file when it is missing, no gzip file, truncated, damaged, followed by
/// other bytes, or unpacks to more than `limit_in_bytes` (< 4 GiB), beyond which no memory is
/// taken.
std::string read_gzip(const std::filesystem::path& path, std::uint64_t limit_in_bytes);

}  // namespace pipewright
