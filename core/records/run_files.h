/// The names of the files that a run leaves in its folder; those in `checkpoint` are known to
/// checkpoint_files.h. Only these are ever replaced or deleted, and links are deleted themselves,
/// never followed.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace pipewright {

/// "steps.csv", "last-actions-2.txt" and so on, of the run's own folder.
bool is_run_file(std::string_view name);
/// What a sweep adds for its runs: "point.json", ".experiment.yaml", "log.txt".
bool is_sweep_file(std::string_view name);
using NameTest = bool (*)(std::string_view name);

/// The entries of a folder whose names are ours; none where there is no folder or it is a link.
std::vector<std::filesystem::path> own_entries(const std::filesystem::path& folder, NameTest ours);

/// Deletes the files of these names. Throws Error{Data}.
void remove_files(const std::filesystem::path& folder, NameTest ours);
/// Deletes what a killed process was writing of files of these names: "<name>.<pid>.part". Throws
/// Error{Data}.
void remove_parts(const std::filesystem::path& folder, NameTest ours);

}  // namespace pipewright
