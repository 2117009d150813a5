// SPDX-License-Identifier: Apache-2.0
/// The files that this command has opened to read, however they were named. Nothing that it writes
/// by a name which the user chose may replace them. Any thread may use these functions.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace pipewright {

/// Adds an open file, by its device and its number there. InputFile calls it. Only the first
/// 100,000 are kept (3 MB): these come before the samples of a data set, which may be millions.
void remember_given_file(dev_t device, ino_t number);

/// Whether `file` is one of them, by this name or by another (a link, say).
bool is_given_file(const std::filesystem::path& file);

/// Throws Error{Experiment} if `file` is one of them.
void refuse_given_file(const std::filesystem::path& file);

}  // namespace pipewright
