// SPDX-License-Identifier: Apache-2.0
#include "core/system/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error_at.h"
#include "core/system/given_files.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// The kind of a file that is not regular: "a FIFO or pipe", "a device".
std::string_view unreadable_kind(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO or pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of another kind";
}

}  // namespace

// Without O_NONBLOCK, opening a FIFO blocks until some process opens it for writing.
InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), file_(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY) {
  if (!file_.is_open() && errno == ENXIO)
    throw data_error(path_, "cannot read: it is a socket or a device; expected a plain file");
  struct stat status {};
  if (!file_.is_open() || ::fstat(file_.number(), &status) != 0) fail("cannot open", errno);
  if (S_ISDIR(status.st_mode)) fail("cannot read", EISDIR);
  if (!S_ISREG(status.st_mode))
    throw data_error(path_, "cannot read: it is ", unreadable_kind(status.st_mode),
                     "; expected a plain file");
  size_ = static_cast<std::uint64_t>(status.st_size);
  remember_opened_file(path_, status.st_dev, status.st_ino);
}

std::uint64_t InputFile::read(char* out, std::uint64_t count) {
  std::uint64_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(file_.number(), out + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read", errno);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

std::uint64_t InputFile::read_at(std::uint64_t offset, char* out, std::uint64_t count) {
  if (::lseek(file_.number(), static_cast<off_t>(offset), SEEK_SET) < 0) fail("cannot read", errno);
  return read(out, count);
}

void InputFile::skip(std::uint64_t count) {
  if (::lseek(file_.number(), static_cast<off_t>(count), SEEK_CUR) < 0) fail("cannot read", errno);
}

void InputFile::fail(std::string_view what, int code) const {
  refuse_file(path_, what, code);
}

}  // namespace pipewright
