// SPDX-License-Identifier: Apache-2.0
#include "core/system/folder_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error_at.h"
#include "core/system/file.h"
#include "core/system/host_name.h"
#include "core/system/machine_limits.h"
#include "core/system/utc.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs =
    "Pipewright made this folder. It deletes and replaces only files of its own names here.\n";
constexpr std::string_view kLast = "Last at work: ";
constexpr std::size_t kBytes = 512;  // fixed size of a marker, so that one write replaces it

/// "pid 1234 on host x since 2026-01-31T12:00:00Z"
std::string this_process() {
  return concat("pid ", ::getpid(), " on host ", host_name(), " since ", utc_now());
}

std::string text_of(const Descriptor& marker) {
  std::string text(kBytes, '\0');
  const ssize_t count = ::pread(marker.number(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// The process that worked here last, from the marker's text; nullopt where the text has none.
std::optional<std::string> holder_of(const Descriptor& marker) {
  const std::string text = text_of(marker);
  const std::size_t begin = text.find(kLast), end = text.find('\n', kOurs.size());
  if (begin != kOurs.size() || end == std::string::npos) return std::nullopt;
  const std::string holder = text.substr(begin + kLast.size(), end - begin - kLast.size());
  const bool plain = std::ranges::all_of(holder, [](char c) { return c >= ' ' && c <= '~'; });
  return plain ? std::optional(holder) : std::nullopt;
}

/// The process of a holder on this host; 0: it is on another, or unknown.
int pid_here(const std::string& holder) {
  int pid = 0;
  char host[256] = {};
  const bool read = std::sscanf(holder.c_str(), "pid %d on host %255s", &pid, host) == 2;
  return read && host == host_name() ? std::max(pid, 0) : 0;
}

bool is_dead(const std::string& holder) {
  const int pid = pid_here(holder);
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

/// Refuses a folder that another process has locked, and names the process. If that one is dead, a
/// child that inherited the lock still works there.
[[noreturn]] void refuse_taken(const fs::path& folder, const Descriptor& marker) {
  const std::string holder = holder_of(marker).value_or("another process");
  const std::string by = is_dead(holder) ? "a process that was started by " + holder : holder;
  throw experiment_error(folder, "the folder is being worked in by ", by,
                         "; wait until it has ended, or give another --out");
}

[[noreturn]] void refuse_foreign(const fs::path& folder, const std::string& what) {
  throw experiment_error(folder, "the folder ", what,
                         ", so it is not Pipewright's, which writes nothing there;",
                         " give another --out, one that is empty or does not exist");
}

/// The alphabetically first name in the folder other than the marker's; "" when there is none.
std::string other_name(const fs::path& folder) {
  std::error_code failed;
  std::string first;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name != kFolderMarker && (first.empty() || name < first)) first = name;
  }
  if (failed) refuse_file(folder, "cannot read the folder", failed.value());
  return first;
}

/// Whether the file is our marker. A process killed while it wrote the marker leaves only the
/// beginning of the text, or an empty file; in an otherwise empty folder that counts, too.
bool is_marker(const Descriptor& file, const fs::path& folder) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const std::string text = text_of(file);
  return text.starts_with(kOurs) || (kOurs.starts_with(text) && other_name(folder).empty());
}

/// Opens the marker, or creates it; `made_here` is set to whether it was created.
Descriptor open_marker(const fs::path& folder, bool adopt, bool& made_here) {
  const fs::path path = folder / kFolderMarker;
  made_here = false;
  for (;;) {
    Descriptor there(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (there.is_open() && is_marker(there, folder)) return there;
    if (there.is_open() || errno == ELOOP || errno == EISDIR)
      refuse_foreign(folder,
                     concat("has a ", std::string_view(kFolderMarker), " of somebody else"));
    if (errno != ENOENT) refuse_file(path, "cannot open", errno);
    const std::string name = other_name(folder);
    // Another process may have claimed the folder since: it creates the marker before any other
    // file.
    if (!name.empty() && !adopt && !fs::exists(fs::symlink_status(path)))
      refuse_foreign(folder,
                     concat("has '", name, "' in it and no ", std::string_view(kFolderMarker)));
    Descriptor made(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    made_here = made.is_open();
    if (made.is_open()) return made;
    if (errno != EEXIST) refuse_file(path, "cannot create", errno);
  }
}

/// Locks without waiting. False when another process has the lock; true also on file systems
/// without locks.
bool take(const Descriptor& file, int how) {
  return ::flock(file.number(), how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// Takes the lock alone. It tries for a while, because is_free() holds the lock for a moment.
bool take_alone(const Descriptor& file) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (take(file, LOCK_EX)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Whether the marker was deleted between being opened and being locked.
bool is_gone(const Descriptor& marker) {
  struct stat status {};
  return ::fstat(marker.number(), &status) == 0 && status.st_nlink == 0;
}

/// Writes who works here into the marker. Only a new marker is synced: a power cut may lose the
/// name.
void sign(const Descriptor& marker, const fs::path& folder) {
  const bool is_new = text_of(marker).size() < kBytes;
  std::string text = concat(kOurs, kLast, this_process(), "\n");
  text.resize(kBytes - 1, ' ');
  text += '\n';
  const fs::path path = folder / kFolderMarker;
  ::lseek(marker.number(), 0, SEEK_SET);
  write_all(marker.number(), text, path);
  if (!is_new) return;
  if (::fsync(marker.number()) != 0) refuse_file(path, "cannot sync", errno);
  sync_folder(folder);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, FolderTerms terms) : folder_(folder) {
  do {
    std::error_code none;
    made_folder_ = !fs::exists(folder, none);
    make_folders(folder);
    marker_ = open_marker(folder, terms.adopt, made_marker_);
    if (!take_alone(marker_)) refuse_taken(folder, marker_);
  } while (is_gone(marker_));
  if (terms.inherited) ::fcntl(marker_.number(), F_SETFD, 0);
  sign(marker_, folder);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)),
      marker_(std::move(other.marker_)),
      made_folder_(other.made_folder_),
      made_marker_(std::exchange(other.made_marker_, false)) {}

FolderLock::~FolderLock() {
  if (!made_marker_) return;
  try {
    if (!other_name(folder_).empty()) return;
    std::error_code ignored;
    fs::remove(folder_ / kFolderMarker, ignored);
    if (made_folder_) fs::remove(folder_, ignored);  // fails if a file has been put there meanwhile
  } catch (const Error&) {  // a folder that cannot be read keeps its marker
  }
}

bool is_held(const fs::path& folder) {
  const Descriptor marker(folder / kFolderMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  return marker.is_open() && !take(marker, LOCK_SH);
}

bool is_free(const fs::path& folder) {
  const Descriptor marker(folder / kFolderMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!marker.is_open()) return errno == ENOENT;
  if (::flock(marker.number(), LOCK_SH | LOCK_NB) != 0) return false;
  return pid_here(holder_of(marker).value_or("")) > 0;
}

FolderTurn::FolderTurn(const fs::path& folder) : folder_(folder, O_RDONLY | O_DIRECTORY) {
  while (folder_.is_open() && ::flock(folder_.number(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace pipewright
