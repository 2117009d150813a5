// SPDX-License-Identifier: Apache-2.0
/// The check before a file is replaced.
#pragma once

#include <filesystem>

namespace pipewright {

/// Throws Error{Data} if `path` exists and is not a regular file: links, devices, pipes and folders
/// are never replaced. write_file() calls it first.
void require_plain_file(const std::filesystem::path& path);

}  // namespace pipewright
