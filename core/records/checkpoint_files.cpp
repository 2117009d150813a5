// SPDX-License-Identifier: Apache-2.0
#include "core/records/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "core/base/text.h"
#include "core/records/run_files.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFolderDigits = 6;
constexpr std::array<std::string_view, 4> kBesideTheManifest{
    "manifest.json", "manifest.previous.json", "steps-#.csv", "probes-#.csv"};
constexpr std::array<std::string_view, 7> kOfOneCheckpoint{"metrics.safetensors",
                                                           "stage-#.safetensors",
                                                           "stage-#.replica-#.safetensors",
                                                           "edges-#.replica-#.safetensors",
                                                           "exchange-#.replica-#.safetensors",
                                                           "stash-#.replica-#.safetensors",
                                                           "perturb-#.replica-#.safetensors"};

/// Whether a process was writing a file of this name.
bool is_part(std::string_view name) {
  return !whole_of(name).empty();
}

/// Whether the name is that of such a file, finished or not.
bool matches_any(std::string_view name, std::span<const std::string_view> patterns) {
  return matches_one(is_part(name) ? whole_of(name) : name, patterns);
}

/// Whether the path is a folder itself, not a link to one.
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::directory;
}

void remove_file(const fs::path& path) {
  std::error_code ignored;
  if (!is_folder(path)) fs::remove(path, ignored);  // removes a link itself
}

/// Names of a folder's entries, as many as can be read.
std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

bool is_checkpoint_file(std::string_view name) {
  return matches_any(name, kBesideTheManifest);
}

bool is_checkpoint_folder(std::string_view name) {
  return name.size() >= kFolderDigits && std::ranges::all_of(name, is_digit);
}

std::string checkpoint_folder_name(std::int64_t minibatches) {
  const std::string digits = std::to_string(minibatches);
  return digits.size() < kFolderDigits ? std::string(kFolderDigits - digits.size(), '0') + digits
                                       : digits;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error && error != std::errc::no_such_file_or_directory)
    refuse_file(folder, "cannot list the folder", error.value());
  return names;
}

void remove_checkpoint(const fs::path& folder, const std::vector<std::string>& kept) {
  if (!is_folder(folder)) return;
  std::error_code ignored;
  for (const std::string& name : names_in(folder, ignored))
    if (matches_any(name, kOfOneCheckpoint) && std::ranges::count(kept, name) == 0)
      remove_file(folder / name);
  if (kept.empty()) fs::remove(folder, ignored);  // unless it holds others
}

void remove_checkpoint_parts(const fs::path& checkpoints) {
  for (const std::string& name : names_in(checkpoints)) {
    if (is_checkpoint_file(name) && is_part(name)) remove_file(checkpoints / name);
    if (!is_checkpoint_folder(name) || !is_folder(checkpoints / name)) continue;
    for (const std::string& file : names_in(checkpoints / name))
      if (matches_any(file, kOfOneCheckpoint) && is_part(file))
        remove_file(checkpoints / name / file);
  }
}

void remove_checkpoints(const fs::path& checkpoints) {
  if (!is_folder(checkpoints)) return;
  std::error_code ignored;
  const std::vector<std::string> names = names_in(checkpoints, ignored);
  for (const std::string& name : names)
    if (is_checkpoint_file(name)) remove_file(checkpoints / name);
  for (const std::string& name : names)
    if (is_checkpoint_folder(name)) remove_checkpoint(checkpoints / name);
  fs::remove(checkpoints, ignored);  // unless it holds others
}

}  // namespace pipewright
