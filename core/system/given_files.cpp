// SPDX-License-Identifier: Apache-2.0
#include "core/system/given_files.h"

#include <sys/stat.h>

#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostGivenFiles = 100'000;

struct GivenFiles {
  Mutex mutex;
  std::set<std::pair<dev_t, ino_t>> files PIPEWRIGHT_GUARDED_BY(mutex);
};

GivenFiles& given_files() {
  static GivenFiles given;
  return given;
}

}  // namespace

void remember_given_file(dev_t device, ino_t number) {
  GivenFiles& given = given_files();
  const Lock lock(given.mutex);
  if (given.files.size() < kMostGivenFiles) given.files.emplace(device, number);
}

bool is_given_file(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return false;
  GivenFiles& given = given_files();
  const Lock lock(given.mutex);
  return given.files.contains({status.st_dev, status.st_ino});
}

void refuse_given_file(const std::filesystem::path& file) {
  if (is_given_file(file))
    throw Error(ErrorKind::Experiment,
                "is a file that this command reads, so it is not replaced; give another name",
                file.string());
}

}  // namespace pipewright
