// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_files.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// Whether the name matches the pattern, in which each # matches one digit or more.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  for (const char c : pattern) {
    const std::size_t begin = at;
    if (c == '#')
      while (at < name.size() && is_digit(name[at])) ++at;
    else if (at < name.size() && name[at] == c)
      ++at;
    if (at == begin) return false;
  }
  return at == name.size();
}

constexpr std::array<std::string_view, 13> kRun{
    "experiment.yaml",    "run.json",          "steps.csv",   "epochs.csv",
    "traffic.csv",        "final.safetensors", "trace.json",  "timeline.svg",
    "last-actions-#.txt", "probes.csv",        "report.html", "events.out.tfevents.pipewright",
    "evaluations.csv"};
constexpr std::array<std::string_view, 3> kSweep{"point.json", ".experiment.yaml", "log.txt"};

/// Removes an entry; a link is removed itself.
void remove_entry(const fs::path& path) {
  std::error_code failed;
  fs::remove(path, failed);
  if (failed)
    throw Error(ErrorKind::Data, concat("cannot remove: ", failed.message()), path.string());
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code none;
  if (!fs::is_directory(fs::symlink_status(folder, none))) return entries;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none))
    entries.push_back(entry->path());
  if (none) refuse_file(folder, "cannot list the folder", none.value());
  return entries;
}

}  // namespace

bool matches_one(std::string_view name, std::span<const std::string_view> patterns) {
  return std::ranges::any_of(patterns, [&](auto pattern) { return matches(name, pattern); });
}

std::string_view whole_of(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1))
    if (matches(name.substr(dot), ".#.part") || matches(name.substr(dot), ".#-#.part"))
      return name.substr(0, dot);
  return {};
}

bool is_run_file(std::string_view name) {
  return matches_one(name, kRun);
}

bool is_sweep_file(std::string_view name) {
  return matches_one(name, kSweep);
}

std::vector<fs::path> own_entries(const fs::path& folder, NameTest ours) {
  std::vector<fs::path> entries = entries_of(folder);
  std::erase_if(entries, [&](const fs::path& entry) { return !ours(entry.filename().string()); });
  return entries;
}

void remove_files(const fs::path& folder, NameTest ours) {
  for (const fs::path& file : own_entries(folder, ours)) remove_entry(file);
}

void remove_parts(const fs::path& folder, NameTest ours) {
  for (const fs::path& file : entries_of(folder))
    if (ours(whole_of(file.filename().string()))) remove_entry(file);
}

}  // namespace pipewright
