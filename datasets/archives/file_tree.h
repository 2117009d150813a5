/// The files of a data set as its authors pack them: below a folder, or in an archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace pipewright {

/// Contents by name, which has '/' between folders, whatever the system, and is sorted.
using FileTree = std::map<std::string, std::string>;

/// Given a name, the most bytes that the file may have; 0 leaves it out.
using Wanted = std::function<std::uint64_t(const std::string& name)>;

/// Reads the files wanted below a folder, names relative to it; or from a .tar, .tar.gz or .zip
/// archive, names without the first folder, in which everything is packed. Hidden files are left
/// out. Throws Error{Data} naming the file, and the member of an archive: missing, damaged, larger
/// than wanted, or more than `limit_in_bytes` in all.
FileTree read_tree(const std::filesystem::path& place, const Wanted& wanted,
                   std::uint64_t limit_in_bytes);

}  // namespace pipewright
