// SPDX-License-Identifier: Apache-2.0
/// The names of the files that a run writes to its folder (for those in `checkpoint` see
/// checkpoint_files.h). Only files with these names are ever replaced or deleted. Links are deleted
/// themselves, never followed.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

/// Whether a run writes files of that name: "steps.csv", "last-actions-2.txt" and so on.
bool is_run_file(std::string_view name);
/// Whether a sweep writes that file for its runs: "point.json", ".experiment.yaml", "log.txt".
bool is_sweep_file(std::string_view name);
/// Whether the name matches one of the patterns, in which each # matches one digit or more.
bool matches_one(std::string_view name, std::span<const std::string_view> patterns);

/// The final name of an unfinished file: "steps.csv" for "steps.csv.123.part"; "" of other names.
std::string_view whole_of(std::string_view name);

using NameTest = bool (*)(std::string_view name);

/// Entries of a folder whose names pass the test; none if the folder is missing or a link. Throws
/// Error{Data} if it cannot be read to its end.
std::vector<std::filesystem::path> own_entries(const std::filesystem::path& folder, NameTest ours);

/// Deletes the files whose names pass the test. Throws Error{Data}.
void remove_files(const std::filesystem::path& folder, NameTest ours);
/// Deletes unfinished files "<name>.<pid>.part" of killed processes if <name> passes the test.
/// Throws Error{Data}.
void remove_parts(const std::filesystem::path& folder, NameTest ours);

}  // namespace pipewright
