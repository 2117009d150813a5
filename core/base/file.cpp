#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int code) {
  throw Error(ErrorKind::Data, concat(what, ": ", std::string_view(std::strerror(code))),
              path.string());
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_in_bytes) {
  const Descriptor file(path, O_RDONLY);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) fail(path, "cannot open", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read", EISDIR);
  std::string content;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit_in_bytes)
    throw Error(ErrorKind::Data,
                concat("file has ", size, " bytes, at most ", limit_in_bytes, " are read"),
                path.string());
  content.resize(size);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::read(file.number(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot read", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  content.resize(done);
  return content;
}

void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::error_code ignored;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::filesystem::create_directories(folder, ignored);
  const std::filesystem::path part = concat(path.string(), ".", ::getpid(), ".part");
  try {
    const Descriptor file(part, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.number() < 0) fail(part, "cannot create", errno);
    for (const std::string_view piece : pieces) write_all(file.number(), piece, part);
    if (::fsync(file.number()) != 0) fail(part, "cannot sync", errno);
    if (::rename(part.c_str(), path.c_str()) != 0) fail(path, "cannot rename", errno);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
  const Descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  if (directory.number() >= 0) ::fsync(directory.number());
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::span(&content, 1));
}

std::filesystem::path resolved_path(const std::string& text, const std::filesystem::path& base) {
  if (text == "~" || text.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    if (home != nullptr) return std::filesystem::path(home) / text.substr(text.size() > 1 ? 2 : 1);
  }
  const std::filesystem::path path(text);
  return (path.is_absolute() ? path : std::filesystem::absolute(base) / path).lexically_normal();
}

}  // namespace pipewright
