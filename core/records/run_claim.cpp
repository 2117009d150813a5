// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_claim.h"

#include <optional>

#include "core/base/error.h"
#include "core/config/json.h"
#include "core/records/checkpoint_files.h"
#include "core/records/run_files.h"
#include "core/system/file.h"
#include "core/system/given_files.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestRecord = 1 << 22;  // bytes

/// The content of run.json, if a run of ours has written it.
std::optional<Value> run_in(const fs::path& folder) {
  const fs::path file = folder / "run.json";
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(file, none))) return std::nullopt;
  // A record that cannot be read is an error: it may well be one of ours.
  const std::string text = read_file(file, kLargestRecord);
  try {
    Value run = parse_json(text, file.string());
    for (const char* key : {"state", "digest", "pipewright"})
      if (const Value* value = run.find(key); value == nullptr || !value->is(Value::Kind::Text))
        return std::nullopt;
    return run;
  } catch (const Error&) {
    return std::nullopt;
  }
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::Experiment, concat(why, "; remove it, or give another --out"),
              path.string());
}

void check_type(const fs::path& path, fs::file_type expected, bool links) {
  std::error_code none;
  const fs::file_type type = fs::symlink_status(path, none).type();
  if (type == fs::file_type::symlink && !links)
    refuse(path, "is a symbolic link, which a run does not follow");
  if (type != expected && type != fs::file_type::symlink && type != fs::file_type::not_found)
    refuse(path, expected == fs::file_type::regular ? "is no regular file" : "is no folder");
}

void check_names(const RunFolder& folder, bool overwrite) {
  for (const fs::path& file : own_entries(folder.path(), is_run_file))
    check_type(file, fs::file_type::regular, overwrite);
  for (const fs::path& file : own_entries(folder.path(), is_sweep_file))
    check_type(file, fs::file_type::regular, false);
  check_type(folder.checkpoints(), fs::file_type::directory, overwrite);
  for (const fs::path& each : own_entries(folder.checkpoints(), is_checkpoint_folder))
    check_type(each, fs::file_type::directory, overwrite);
  if (!overwrite) return;
  for (const fs::path& file : own_entries(folder.path(), is_run_file))
    if (is_given_file(file))
      throw Error(ErrorKind::Experiment,
                  "is a file that this command reads, and --overwrite would delete it; give "
                  "another --out",
                  file.string());
}

}  // namespace

FolderLock claim(const RunFolder& folder, const ClaimTerms& terms) {
  const bool known = (terms.resume || terms.overwrite) && run_in(folder.path());
  FolderLock lock(folder.path(), {.adopt = known});
  check_names(folder, terms.overwrite);
  for (const NameTest ours : {is_run_file, is_sweep_file}) remove_parts(folder.path(), ours);
  if (!terms.overwrite)
    remove_checkpoint_parts(folder.checkpoints());  // `overwrite` removes all checkpoints
  return lock;
}

std::string recorded_state(const RunFolder& folder) {
  const std::optional<Value> run = run_in(folder.path());
  return run ? run->find("state")->text : "missing";
}

}  // namespace pipewright
