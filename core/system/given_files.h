/// Files that a person gave this command to read: whatever the command writes, it never replaces
/// them.
#pragma once

#include <filesystem>

namespace pipewright {

/// Call it when the file is read. One thread.
void remember_given_file(const std::filesystem::path& file);

/// Whether `file` is one of them, under whatever name.
bool is_given_file(const std::filesystem::path& file);

/// Throws Error{Experiment} if it is.
void refuse_given_file(const std::filesystem::path& file);

}  // namespace pipewright
