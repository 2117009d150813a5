// SPDX-License-Identifier: Apache-2.0
/// The files that a user gave this command to read. Nothing that the command writes may replace
/// them.
#pragma once

#include <filesystem>

namespace pipewright {

/// Adds a file to them. Call it when the file is read. Only one thread may use these functions.
void remember_given_file(const std::filesystem::path& file);

/// Whether `file` is one of them, by this name or by another (a link, say).
bool is_given_file(const std::filesystem::path& file);

/// Throws Error{Experiment} if `file` is one of them.
void refuse_given_file(const std::filesystem::path& file);

}  // namespace pipewright
