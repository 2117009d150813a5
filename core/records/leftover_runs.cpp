// SPDX-License-Identifier: Apache-2.0
#include "core/records/leftover_runs.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/records/run_files.h"
#include "core/records/run_folder.h"
#include "core/system/folder_lock.h"

namespace pipewright {

namespace fs = std::filesystem;

std::vector<fs::path> leftover_runs(const fs::path& sweep_folder,
                                    const std::vector<RunRecord>& today) {
  std::set<fs::path> known;
  for (const RunRecord& run : today) known.insert(run.folder.filename());
  std::vector<fs::path> leftovers;
  std::error_code unreadable;
  for (fs::directory_iterator at(sweep_folder, unreadable), end; !unreadable && at != end;
       at.increment(unreadable))
    if (!known.contains(at->path().filename()) && is_run_folder(*at))
      leftovers.push_back(at->path());
  std::ranges::sort(leftovers);
  return leftovers;
}

std::vector<fs::path> leftovers_of(const std::string& name, const std::string& file,
                                   const fs::path& sweep_folder,
                                   const std::vector<RunRecord>& today) {
  std::vector<fs::path> leftovers = leftover_runs(sweep_folder, today);
  std::erase_if(leftovers, [&](const fs::path& folder) {
    std::error_code none;
    if (!fs::is_regular_file(fs::symlink_status(folder / kFolderMarker, none))) return true;
    const std::string made_by = file_of_point(folder);
    if (!made_by.empty() && made_by != file) return true;
    const RunOutcome outcome = read_outcome(folder);
    return !outcome.name.empty() && outcome.name != name;
  });
  return leftovers;
}

std::vector<std::string> remove_run(const fs::path& folder) {
  const FolderLock lock(folder);
  RunFolder(folder).clear();
  for (const NameTest ours : {is_run_file, is_sweep_file}) {
    remove_files(folder, ours);
    remove_parts(folder, ours);
  }
  std::error_code failed;
  fs::remove(folder / "checkpoint", failed);  // succeeds only if it is empty
  std::vector<std::string> others;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (const std::string name = at->path().filename().string(); name != kFolderMarker)
      others.push_back(name);
  std::ranges::sort(others);
  if (others.empty() && !failed) fs::remove(folder / kFolderMarker, failed);
  if (others.empty() && !failed) fs::remove(folder, failed);
  if (failed)
    throw Error(ErrorKind::Data, concat("cannot remove: ", failed.message()), folder.string());
  return others;
}

}  // namespace pipewright
