// SPDX-License-Identifier: Apache-2.0
#include "core/system/given_files.h"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/mutex.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostOpenedFiles = 100'000;

using FileNumber = std::pair<dev_t, ino_t>;

/// Files by their numbers, with the path that each was read by.
using Paths = std::map<FileNumber, std::filesystem::path>;

struct ReadFiles {
  Mutex mutex;
  Paths opened PIPEWRIGHT_GUARDED_BY(mutex);
  Paths given PIPEWRIGHT_GUARDED_BY(mutex);
  Paths folders PIPEWRIGHT_GUARDED_BY(mutex);  ///< nothing below is replaced
};

ReadFiles& read_files() {
  static ReadFiles files;
  return files;
}

std::optional<FileNumber> number_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return FileNumber(status.st_dev, status.st_ino);
}

/// The working folder may have been removed; relative paths then stay as they are.
std::filesystem::path absolute_or_same(const std::filesystem::path& file) {
  std::error_code none;
  std::filesystem::path path = std::filesystem::absolute(file, none);
  return none ? file : path;
}

/// The folders that hold a file: its own and those above.
std::set<FileNumber> folders_of(std::filesystem::path file) {
  std::set<FileNumber> folders;
  for (file = file.parent_path(); !file.empty(); file = file.parent_path()) {
    if (const auto number = number_of(file)) folders.insert(*number);
    if (file == file.parent_path()) break;
  }
  return folders;
}

/// Whether one of these files has that number: one that has been removed gives its number away.
bool has(const Paths& files, const FileNumber& number) {
  const auto found = files.find(number);
  return found != files.end() && number_of(found->second) == number;
}

/// Whether one of the folders holds the file, by the name given or by the one that links lead to.
bool is_below(const std::filesystem::path& file, const Paths& folders) {
  if (folders.empty()) return false;
  std::error_code none;
  for (const auto& name : {absolute_or_same(file), std::filesystem::canonical(file, none)})
    for (const FileNumber& folder : folders_of(name))
      if (has(folders, folder)) return true;
  return false;
}

}  // namespace

void remember_opened_file(const std::filesystem::path& file, dev_t device, ino_t number) {
  const std::filesystem::path path = absolute_or_same(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (files.opened.size() < kMostOpenedFiles) files.opened.insert_or_assign({device, number}, path);
}

void remember_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (number) files.given.insert_or_assign(*number, absolute_or_same(file));
}

void remember_named_path(const std::filesystem::path& path) {
  const auto number = number_of(path);
  if (!number) return;
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);
  const bool works_in_it =
      folder && folders_of(std::filesystem::current_path(none) / ".").contains(*number);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (!folder)
    files.opened.insert_or_assign(*number, absolute_or_same(path));
  else if (!works_in_it)
    files.folders.insert_or_assign(*number, absolute_or_same(path));
}

bool is_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  return number && has(files.given, *number);
}

void refuse_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (number && (has(files.opened, *number) || has(files.given, *number)))
    throw experiment_error(
        file, "is a file that this command reads, so it is not replaced; give another name");
  if (number && is_below(file, files.folders))
    throw experiment_error(file,
                           "is in a folder that the experiment names, as that of its data, so it "
                           "is not replaced; give another name");
}

}  // namespace pipewright
