// SPDX-License-Identifier: Apache-2.0
/// Whole files: read in one go, and written atomically, so that no reader ever sees half a file.
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

/// Which parts are synced when a file is written. A file that outlives a power cut needs both; each
/// takes about as long as a small training step.
struct Syncs {
  bool content = true;  ///< before the rename; otherwise a power cut may leave a file of zeros
  bool name = true;     ///< after the rename; otherwise sync_folder() can do it for several files
};

/// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder:
/// readers see the old content or the new, never a part, and once it has returned, the new one
/// outlives a power cut. Creates missing folders. Throws Error{Data}; see also plain_file.h.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces,
                Syncs syncs = {});
void write_file(const std::filesystem::path& path, std::string_view content, Syncs syncs = {});

/// Writes all bytes to an open descriptor, in several calls where the system takes fewer at once.
/// Throws Error{Data} naming `path`.
void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path);

/// The folder that a path is in; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Creates a folder with its missing parents and syncs each, so that they outlive a power cut. If
/// `folder` is a link to a folder that does not exist, creates that one. Throws Error{Data}.
void make_folders(const std::filesystem::path& folder);
/// Syncs a folder, so that the names in it outlive a power cut. Does nothing where the file system
/// cannot. Throws Error{Data}.
void sync_folder(const std::filesystem::path& folder);

/// The value of an environment variable; "" where it is not set. Everywhere an empty one counts as
/// not set.
std::string environment_value(const char* name);

/// Resolves a path as a user writes it: `~/data/x` is below the folder that PIPEWRIGHT_DATA names,
/// if it is set; any other `~/x` is below the home folder, which HOME names or, if that is not set,
/// the system; any other relative path is relative to `base`. Throws Error{Experiment} where
/// nothing names the home folder.
std::filesystem::path resolved_path(const std::string& text, const std::filesystem::path& base);

}  // namespace pipewright
