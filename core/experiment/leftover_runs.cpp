#include "core/experiment/leftover_runs.h"

#include <algorithm>
#include <set>

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

std::vector<fs::path> leftovers_of(const std::string& name, const fs::path& sweep_folder,
                                   const std::vector<RunRecord>& today) {
  std::vector<fs::path> leftovers = leftover_runs(sweep_folder, today);
  std::erase_if(leftovers, [&](const fs::path& folder) {
    const RunOutcome outcome = read_outcome(folder);
    return !outcome.name.empty() && outcome.name != name;
  });
  return leftovers;
}

}  // namespace pipewright
