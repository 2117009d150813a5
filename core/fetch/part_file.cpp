// SPDX-License-Identifier: Apache-2.0
#include "core/fetch/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/system/file.h"
#include "core/system/machine_limits.h"
#include "core/system/plain_file.h"

namespace pipewright {

PartFile::PartFile(const std::filesystem::path& target)
    : target_(target), path_(target.string() + ".part") {
  make_folders(folder_of(path_));
  for (const std::filesystem::path& file : {target_, path_}) require_plain_file(file);
  file_ = Descriptor(path_, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!file_.is_open()) fail("cannot create");
  struct stat ours {
  }, named{};
  // Before we got the lock, its last owner may have renamed the file.
  const bool alone = ::flock(file_.number(), LOCK_EX | LOCK_NB) == 0 &&
                     ::fstat(file_.number(), &ours) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                     ours.st_ino == named.st_ino;
  if (!alone)
    throw Error(ErrorKind::Data, "another `pipewright fetch` is downloading this file",
                path_.string());
  size_ = static_cast<std::uint64_t>(ours.st_size);
}

void PartFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
}

void PartFile::clear() {
  if (::ftruncate(file_.number(), 0) != 0) fail("cannot empty");
  size_ = 0;
}

void PartFile::finish() {
  if (::fsync(file_.number()) != 0) fail("cannot sync");
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail("cannot rename");
  sync_folder(folder_of(target_));
}

void PartFile::remove() {
  if (::unlink(path_.c_str()) != 0) fail("cannot remove");
}

void PartFile::fail(std::string_view what) const {
  const std::string advice =
      errno == ENOSPC || errno == EDQUOT
          ? "; make room, or choose another folder with --to; the same command then goes on"
          : "; --to chooses another folder";
  throw Error(ErrorKind::Data, concat(what, ": ", errno_text(errno), advice), path_.string());
}

}  // namespace pipewright
