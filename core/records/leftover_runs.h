// SPDX-License-Identifier: Apache-2.0
/// Leftovers: run folders of a sweep for which its file no longer has a point. An earlier version
/// of the file, or other --set or --profile options, made them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// The run folders directly in a sweep's folder, sorted by name, without those of today's records.
std::vector<std::filesystem::path> leftover_runs(const std::filesystem::path& sweep_folder,
                                                 const std::vector<RunRecord>& today);

/// The leftovers that may be removed: they have our marker, belong to the experiment `name` or have
/// never begun, and no other file than `file`, an absolute path, has made them. Two files can share
/// a sweep's folder, and one that extends another can have its name.
std::vector<std::filesystem::path> leftovers_of(const std::string& name, const std::string& file,
                                                const std::filesystem::path& sweep_folder,
                                                const std::vector<RunRecord>& today);

/// Deletes the files with our names in a run's folder, and then the folder if it is empty. Links
/// are not followed. Returns the names of other entries. Throws Error{Experiment} if the folder is
/// not ours or a process works in it, and Error{Data} if something cannot be deleted.
std::vector<std::string> remove_run(const std::filesystem::path& folder);

}  // namespace pipewright
