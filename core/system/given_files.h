// SPDX-License-Identifier: Apache-2.0
/// The files that this command reads, by whatever name: nothing that it writes by a name which the
/// user chose may replace them. Any thread may use these functions.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace pipewright {

/// Adds an open file: the path it was opened by, its device, and its number there. InputFile calls
/// it. Only the first 100,000 are kept (some 15 MB): these come before the samples of a data set,
/// which may be millions. A file counts as long as it is found under its path: what has the number
/// of a file that was removed is another one.
void remember_opened_file(const std::filesystem::path& file, dev_t device, ino_t number);

/// Adds a file that the user named as an input. A run may overwrite the others that it has read:
/// the records of the run before it.
void remember_given_file(const std::filesystem::path& file);

/// Adds a path that an experiment names as its own, such as its data or its first weights, whether
/// this command opens it or not. Of a folder, everything that is below it counts, unless the
/// command works in it: what is there may as well be what the command has written before.
void remember_named_path(const std::filesystem::path& path);

/// Whether the user named `file` as an input, by this name or by another (a link, say).
bool is_given_file(const std::filesystem::path& file);

/// Throws Error{Experiment} if `file` is there and has been opened to be read, named by the user,
/// or is named by the experiment or below a folder that is.
void refuse_given_file(const std::filesystem::path& file);

}  // namespace pipewright
