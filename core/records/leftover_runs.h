/// Run folders of a sweep that its file has no point for any more: an earlier version of the file
/// made them, or other --set or --profile.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// The run folders directly in a sweep's folder, by name, but for those of today's records.
std::vector<std::filesystem::path> leftover_runs(const std::filesystem::path& sweep_folder,
                                                 const std::vector<RunRecord>& today);

/// Those of them that can be removed: with our marker, and of the experiment of that name or of
/// none that ever began, for two files can share a folder.
std::vector<std::filesystem::path> leftovers_of(const std::string& name,
                                                const std::filesystem::path& sweep_folder,
                                                const std::vector<RunRecord>& today);

/// Deletes the files of our names in a run's folder, and the folder when nothing else is in it; no
/// link is followed. Returns what else is in it, by name. Throws Error{Experiment} when the folder
/// is not ours or a process works in it, Error{Data} when something cannot be deleted.
std::vector<std::string> remove_run(const std::filesystem::path& folder);

}  // namespace pipewright
