// SPDX-License-Identifier: Apache-2.0
/// The files of a data set as its authors publish them: below a folder, or in an archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace pipewright {

/// Maps names to contents, sorted by name. Names have '/' between folders on every system.
using FileTree = std::map<std::string, std::string>;

/// Returns the greatest number of bytes that the file `name` may have; 0 skips the file.
using Wanted = std::function<std::uint64_t(const std::string& name)>;

/// Reads the wanted files below a folder, with names relative to it, or from a .tar, .tar.gz or
/// .zip archive, with names that leave out the archive's top folder. Hidden files are skipped.
/// Throws Error{Data}, naming the file or the archive's member, if a file is missing, damaged or
/// larger than `wanted` allows, or if all files together exceed `limit_in_bytes`.
FileTree read_tree(const std::filesystem::path& place, const Wanted& wanted,
                   std::uint64_t limit_in_bytes);

}  // namespace pipewright
