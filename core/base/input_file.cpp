#include "core/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// "a FIFO", "a device": what stands where a plain file is expected.
std::string_view kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO or pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no plain file";
}

}  // namespace

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a FIFO waits for somebody who writes into it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat status {};
  const bool open = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0;
  const int code = errno;
  if (open && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  if (code == ENXIO && !open)  // a socket, which cannot be opened at all
    throw Error(ErrorKind::Data, "cannot read: it is a socket or a device; expected a plain file",
                path_.string());
  if (!open) fail("cannot open", code);
  if (S_ISDIR(status.st_mode)) fail("cannot read", EISDIR);
  throw Error(ErrorKind::Data,
              concat("cannot read: it is ", kind_of(status.st_mode), "; expected a plain file"),
              path_.string());
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::uint64_t InputFile::read(char* out, std::uint64_t count) {
  std::uint64_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(descriptor_, out + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read", errno);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

std::uint64_t InputFile::read_at(std::uint64_t offset, char* out, std::uint64_t count) {
  if (::lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) fail("cannot read", errno);
  return read(out, count);
}

void InputFile::fail(std::string_view what, int code) const {
  throw Error(ErrorKind::Data, concat(what, ": ", std::string_view(std::strerror(code))),
              path_.string());
}

}  // namespace pipewright
