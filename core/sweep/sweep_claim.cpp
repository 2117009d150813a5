// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_claim.h"

#include <string>

namespace pipewright {
namespace {

namespace fs = std::filesystem;

bool is_ours(const fs::directory_entry& entry) {
  std::error_code none;
  const fs::file_type type = entry.symlink_status(none).type();
  if (type == fs::file_type::directory)
    return fs::is_regular_file(fs::symlink_status(entry.path() / kFolderMarker, none));
  const std::string name = entry.path().filename().string();
  return type == fs::file_type::regular &&
         (name.starts_with("profile-") || name.starts_with("cut-")) && name.ends_with(".yaml");
}

bool holds_only_ours(const fs::path& folder) {
  std::error_code failed;
  bool any = false;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!is_ours(*entry)) return false;
    any = true;
  }
  return any && !failed;
}

}  // namespace

FolderLock claim_sweep(const fs::path& folder) {
  return FolderLock(folder, {.adopt = holds_only_ours(folder), .inherited = true});
}

}  // namespace pipewright
