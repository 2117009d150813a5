// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_watch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/records/run_record.h"
#include "core/sweep/run_progress.h"
#include "core/system/folder_lock.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// "gpipe-2" of "gpipe-2-0123456789abcdef"
std::string short_name(const fs::path& folder) {
  constexpr std::size_t kDigest = 17;  // a hyphen and 16 digits
  const std::string name = folder.filename().string();
  if (name.size() <= kDigest || name[name.size() - kDigest] != '-') return name;
  const std::string digest = name.substr(name.size() - kDigest + 1);
  const bool hex = digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex ? name.substr(0, name.size() - kDigest) : name;
}

WatchedRun watched(const fs::path& folder, bool& at_work) {
  const RunOutcome outcome = read_outcome(folder);
  WatchedRun run{.folder = folder.filename().string(),
                 .name = short_name(folder),
                 .state = outcome.state,
                 .error = outcome.error};
  const bool open = run.state == "running" || run.state == "missing";
  const bool held = open && is_held(folder);
  at_work = at_work || held;
  if (run.state == "missing") run.state = held ? "running" : "waiting";
  if (run.state == "running") run.share = trained_share(folder / "log.txt", 0);
  return run;
}

/// Gives runs whose short names are equal, as those of a label with several seeds, the names of
/// their folders.
void tell_apart(std::vector<WatchedRun>& runs) {
  std::map<std::string, int> known;
  for (const WatchedRun& run : runs) ++known[run.name];
  for (WatchedRun& run : runs)
    if (known[run.name] > 1) run.name = run.folder;
}

constexpr const char* kStates[] = {"done", "failed", "interrupted", "running", "waiting"};

}  // namespace

std::size_t WatchedSweep::count(const std::string& state) const {
  return static_cast<std::size_t>(std::ranges::count(runs, state, &WatchedRun::state));
}

WatchedSweep look_at(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none))
    throw Error(ErrorKind::Experiment, "is no folder; expected that of a sweep or a run",
                folder.string());
  WatchedSweep sweep{.at_work = is_held(folder)};
  for (const fs::path& run : run_folders_of(folder, none))
    sweep.runs.push_back(watched(run, sweep.at_work));
  std::ranges::sort(sweep.runs, {},
                    [](const WatchedRun& run) { return std::pair(run.name, run.folder); });
  tell_apart(sweep.runs);
  if (sweep.runs.empty() && !sweep.at_work)
    throw Error(ErrorKind::Experiment,
                "has no runs, and nobody works there; expected the folder of a sweep or a run",
                folder.string());
  return sweep;
}

std::string state_text(const WatchedSweep& sweep) {
  std::vector<std::string> parts, running;
  for (const WatchedRun& run : sweep.runs)
    if (run.state == "running")
      running.push_back(run.share > 0 ? concat(run.name, " ", std::lround(100 * run.share), " %")
                                      : run.name);
  for (const char* state : kStates)
    if (const std::size_t count = sweep.count(state); count > 0)
      parts.push_back(concat(count, " ", std::string_view(state)));
  if (parts.empty()) return "no run yet";
  return running.empty() ? join(parts, ", ")
                         : concat(join(parts, ", "), "; running: ", join(running, ", "));
}

std::vector<std::string> changes_since(const WatchedSweep& before, const WatchedSweep& now) {
  std::vector<std::string> changes;
  for (const WatchedRun& run : now.runs) {
    const auto known = std::ranges::find(before.runs, run.folder, &WatchedRun::folder);
    if (known != before.runs.end() && known->state == run.state) continue;
    changes.push_back(
        concat(run.name, ": ", run.state, run.error.empty() ? "" : concat(", ", run.error)));
  }
  return changes;
}

}  // namespace pipewright
