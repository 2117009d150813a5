/// Files as whole values: read in one go, written so that a final name never holds half a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pipewright {

/// The file's bytes. Throws Error{Data} naming the file when it is missing, unreadable or larger
/// than `limit_in_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::uint64_t limit_in_bytes = std::uint64_t{1} << 40);

/// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder:
/// readers see the old content or the new, never a part, and once it has returned, the new one
/// outlives a power cut. Creates missing folders. Throws Error{Data}; see also plain_file.h.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);
void write_file(const std::filesystem::path& path, std::string_view content);

/// Makes what is missing of a folder, so that a power cut does not take it away again. A link to a
/// folder that is not there is followed. Throws Error{Data}.
void make_folders(const std::filesystem::path& folder);
/// Makes the names in the folder outlive a power cut. Throws Error{Data}.
void sync_folder(const std::filesystem::path& folder);

/// `~/x` with the home folder put in, `~/data/x` with the folder that PIPEWRIGHT_DATA names where
/// it is set; anything else relative to `base` when it is not absolute.
std::filesystem::path resolved_path(const std::string& text, const std::filesystem::path& base);

}  // namespace pipewright
