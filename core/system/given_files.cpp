// SPDX-License-Identifier: Apache-2.0
#include "core/system/given_files.h"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostOpenedFiles = 100'000;

using FileNumber = std::pair<dev_t, ino_t>;

struct ReadFiles {
  Mutex mutex;
  std::set<FileNumber> opened PIPEWRIGHT_GUARDED_BY(mutex);
  /// With the path that each was given by: a file system gives the number of a file that has been
  /// removed to another one.
  std::map<FileNumber, std::filesystem::path> given PIPEWRIGHT_GUARDED_BY(mutex);

  bool has_given(const FileNumber& number) const PIPEWRIGHT_REQUIRES(mutex);
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

bool ReadFiles::has_given(const FileNumber& number) const {
  const auto found = given.find(number);
  return found != given.end() && number_of(found->second) == number;
}

}  // namespace

void remember_opened_file(dev_t device, ino_t number) {
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (files.opened.size() < kMostOpenedFiles) files.opened.emplace(device, number);
}

void remember_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (number) files.given.insert_or_assign(*number, std::filesystem::absolute(file));
}

bool is_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  return number && files.has_given(*number);
}

void refuse_given_file(const std::filesystem::path& file) {
  const auto number = number_of(file);
  ReadFiles& files = read_files();
  const Lock lock(files.mutex);
  if (number && (files.opened.contains(*number) || files.has_given(*number)))
    throw Error(ErrorKind::Experiment,
                "is a file that this command reads, so it is not replaced; give another name",
                file.string());
}

}  // namespace pipewright
