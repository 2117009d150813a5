/// What may be replaced by a file that is written.
#pragma once

#include <filesystem>

namespace pipewright {

/// Throws Error{Data} if `path` is something else than a regular file or nothing: a link, a device,
/// a pipe or a folder is never replaced. write_file() begins with it.
void require_plain_file(const std::filesystem::path& path);

}  // namespace pipewright
