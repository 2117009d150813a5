// SPDX-License-Identifier: Apache-2.0
#include "core/system/temporary_file.h"

#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/system/machine_limits.h"

namespace pipewright {
TemporaryFile::TemporaryFile(const std::filesystem::path& beside) {
  constexpr int kNames = 100;
  for (int i = 0; i < kNames && !file_.is_open(); ++i) {
    name_ = concat(beside.string(), ".", ::getpid(), i == 0 ? "" : concat("-", i), ".part");
    file_ = Descriptor(name_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!file_.is_open() && errno != EEXIST) break;
  }
  if (!file_.is_open()) refuse_file(name_, "cannot create", errno);
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(name_.c_str());
}

void TemporaryFile::rename(const std::filesystem::path& path) {
  if (::rename(name_.c_str(), path.c_str()) != 0) refuse_file(path, "cannot rename", errno);
  renamed_ = true;
}

}  // namespace pipewright
