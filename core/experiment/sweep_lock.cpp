#include "core/experiment/sweep_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace pipewright {

SweepLock::SweepLock(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::filesystem::path file = folder / ".lock";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT, 0644);  // inherited on purpose
  if (descriptor_ < 0)
    throw Error(ErrorKind::Data, concat("cannot create: ", std::string_view(std::strerror(errno))),
                file.string());
  const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!taken) return;  // a file system without locks is no reason to refuse
  ::close(descriptor_);
  throw Error(ErrorKind::Experiment,
              "another sweep, or a run it has left behind, works in this folder; wait for it",
              folder.string());
}

SweepLock::~SweepLock() {
  ::close(descriptor_);
}

}  // namespace pipewright
