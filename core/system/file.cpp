// SPDX-License-Identifier: Apache-2.0
#include "core/system/file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <optional>
#include <system_error>

#include "core/base/error_at.h"
#include "core/system/descriptor.h"
#include "core/system/input_file.h"
#include "core/system/machine_limits.h"
#include "core/system/plain_file.h"
#include "core/system/temporary_file.h"

namespace pipewright {
namespace {

/// Writes the pieces. Small ones are collected in a buffer, so that many short pieces take few
/// system calls.
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

/// The part of `text` below `folder`: "x/y" for "~/x/y" and "~"; nullopt if `text` is not below it.
std::optional<std::string> below(const std::string& text, const std::string& folder) {
  if (text == folder) return "";
  if (text.starts_with(folder + "/")) return text.substr(folder.size() + 1);
  return {};
}

/// The folder that "~" stands for. Without HOME the system's list of users says it.
std::filesystem::path home_folder() {
  if (std::string home = environment_value("HOME"); !home.empty()) return home;
  std::array<char, 1 << 14> texts{};
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, texts.data(), texts.size(), &found) == 0 &&
      found != nullptr && found->pw_dir[0] == '/')
    return found->pw_dir;
  throw Error(ErrorKind::Experiment,
              "HOME is not set, and the system knows no home folder of this user; expected a path "
              "without '~', or HOME");
}

/// The kind of a file that is not regular, as in "a symbolic link".
const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return S_ISFIFO(mode) ? "a pipe" : "a socket";
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_file(path, "cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

void sync_folder(const std::filesystem::path& folder) {
  // Some file systems cannot sync folders: fsync() then fails with EINVAL.
  const Descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  if (directory.is_open() && ::fsync(directory.number()) != 0 && errno != EINVAL)
    refuse_file(folder, "cannot sync the folder", errno);
}

void make_folders(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (folder.empty() || fs::is_directory(folder, none)) return;
  if (!folder.has_filename()) return make_folders(folder.parent_path());  // "folder/"
  int failed = ::mkdir(folder.c_str(), 0777) == 0 ? 0 : errno;
  if (failed == ENOENT && folder_of(folder) != folder) {
    make_folders(folder_of(folder));
    failed = ::mkdir(folder.c_str(), 0777) == 0 ? 0 : errno;
  }
  const bool link = failed == EEXIST && fs::is_symlink(fs::symlink_status(folder, none));
  if (link && fs::status(folder, none).type() == fs::file_type::not_found)
    return make_folders(folder_of(folder) / fs::read_symlink(folder, none));
  if (failed == EEXIST && fs::is_directory(folder, none)) return;  // another process was faster
  if (failed == EEXIST)
    throw data_error(folder, "cannot make the folder: there is a file of this name");
  if (failed != 0) refuse_file(folder, "cannot make the folder", failed);
  sync_folder(folder_of(folder));
}

void require_plain_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw data_error(path, "is ", std::string_view(kind_of(status.st_mode)),
                   "; only a regular file is replaced; remove it or give another name");
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_in_bytes) {
  InputFile file(path);
  if (file.size() > limit_in_bytes)
    throw data_error(path, "file has ", file.size(), " bytes, at most ", limit_in_bytes,
                     " are read");
  std::string content;
  try {
    content.resize(file.size());
  } catch (const std::bad_alloc&) {
    throw data_error(path, "no memory for its ", file.size(), " bytes");
  }
  content.resize(file.read(content.data(), content.size()));
  return content;
}

void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces,
                Syncs syncs) {
  make_folders(folder_of(path));
  require_plain_file(path);
  {
    TemporaryFile file(path);
    write_pieces(file.descriptor(), pieces, file.name());
    if (syncs.content && ::fsync(file.descriptor()) != 0)
      refuse_file(file.name(), "cannot sync", errno);
    file.rename(path);
  }
  if (syncs.name) sync_folder(folder_of(path));
}

void write_file(const std::filesystem::path& path, std::string_view content, Syncs syncs) {
  write_file(path, std::span(&content, 1), syncs);
}

std::string environment_value(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::filesystem::path resolved_path(const std::string& text, const std::filesystem::path& base) {
  namespace fs = std::filesystem;
  const auto rest = below(text, "~/data");
  if (const std::string data = environment_value("PIPEWRIGHT_DATA"); rest && !data.empty()) {
    const auto in_home = below(data, "~");
    const fs::path folder = in_home ? home_folder() / *in_home : fs::absolute(data);
    return (rest->empty() ? folder : folder / *rest).lexically_normal();
  }
  if (const auto in_home = below(text, "~")) return home_folder() / *in_home;
  const fs::path path(text);
  return (path.is_absolute() ? path : fs::absolute(base) / path).lexically_normal();
}

}  // namespace pipewright
