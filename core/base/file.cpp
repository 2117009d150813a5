#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
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

/// Small pieces travel together: a file of many short ones takes few calls.
void write_pieces(int descriptor, std::span<const std::string_view> pieces,
                  const std::filesystem::path& path) {
  constexpr std::size_t kTogether = 1 << 16;
  std::string waiting;
  for (const std::string_view piece : pieces) {
    if (waiting.size() + piece.size() > kTogether) {
      write_all(descriptor, waiting, path);
      waiting.clear();
    }
    if (piece.size() > kTogether)
      write_all(descriptor, piece, path);
    else
      waiting += piece;
  }
  write_all(descriptor, waiting, path);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

/// "x/y" of "~/x/y" below "~"; nothing for a text that is not in the folder.
std::optional<std::string> below(const std::string& text, const std::string& folder) {
  if (text == folder) return "";
  if (text.starts_with(folder + "/")) return text.substr(folder.size() + 1);
  return {};
}

std::string setting(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : value;
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  // Some file systems cannot sync folders and say EINVAL.
  const Descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  if (directory.number() >= 0 && ::fsync(directory.number()) != 0 && errno != EINVAL)
    fail(folder, "cannot sync the folder", errno);
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code ignored;  // who opens a file there says what is wrong
  if (std::filesystem::is_directory(folder, ignored) || folder == folder_of(folder)) return;
  make_folders(folder_of(folder));  // their names last too
  if (std::filesystem::create_directory(folder, ignored)) sync_folder(folder_of(folder));
}

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
  make_folders(folder_of(path));
  const std::filesystem::path part = concat(path.string(), ".", ::getpid(), ".part");
  try {
    const Descriptor file(part, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.number() < 0) fail(part, "cannot create", errno);
    write_pieces(file.number(), pieces, part);
    if (::fsync(file.number()) != 0) fail(part, "cannot sync", errno);
    if (::rename(part.c_str(), path.c_str()) != 0) fail(path, "cannot rename", errno);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
  sync_folder(folder_of(path));
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::span(&content, 1));
}

std::filesystem::path resolved_path(const std::string& text, const std::filesystem::path& base) {
  namespace fs = std::filesystem;
  const auto rest = below(text, "~/data");
  if (const std::string data = setting("PIPEWRIGHT_DATA"); rest && !data.empty()) {
    const std::string home = setting("HOME");
    const auto in_home = below(data, "~");
    const fs::path folder =
        in_home && !home.empty() ? fs::path(home) / *in_home : fs::absolute(data);
    return (rest->empty() ? folder : folder / *rest).lexically_normal();
  }
  if (const auto in_home = below(text, "~"); in_home && std::getenv("HOME") != nullptr)
    return fs::path(setting("HOME")) / *in_home;
  const fs::path path(text);
  return (path.is_absolute() ? path : fs::absolute(base) / path).lexically_normal();
}

}  // namespace pipewright
