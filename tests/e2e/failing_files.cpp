// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD, makes one system call on files fail, or the process die in it: the k-th
// of those that concern a path with a given text in it.
//
//   FAILING_FILES_PATH   the text, say the run's folder
//   FAILING_FILES_CALL   write, fsync, rename or any of these; or read or list (of a folder), which
//                        fail with EIO; or short: a write that takes half of the bytes
//   FAILING_FILES_AT     k, from 1
//   FAILING_FILES_KILL   set: SIGKILL instead of ENOSPC
//
// A write that fails, or dies, has written half of its bytes.
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string path_of(int descriptor) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

/// Whether this call is the one.
bool chosen(const char* call, const std::string& path) {
  static const std::string wanted = setting("FAILING_FILES_CALL"),
                           text = setting("FAILING_FILES_PATH");
  static const long at = std::atol(setting("FAILING_FILES_AT").c_str());
  static std::atomic<long> calls{0};
  if (wanted != "any" && wanted != call) return false;
  if (path.find(text) == std::string::npos) return false;
  return ++calls == at;
}

int fail() {
  if (!setting("FAILING_FILES_KILL").empty()) std::raise(SIGKILL);
  errno = ENOSPC;
  return -1;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  static auto* const real_write = real<ssize_t(int, const void*, size_t)>("write");
  static const bool is_short = setting("FAILING_FILES_CALL") == "short";
  if (is_short)
    return real_write(descriptor, bytes, chosen("short", path_of(descriptor)) ? count / 2 : count);
  if (!chosen("write", path_of(descriptor))) return real_write(descriptor, bytes, count);
  static_cast<void>(real_write(descriptor, bytes, count / 2));
  return fail();
}

extern "C" ssize_t read(int descriptor, void* bytes, size_t count) {
  static auto* const real_read = real<ssize_t(int, void*, size_t)>("read");
  static const bool wanted = setting("FAILING_FILES_CALL") == "read";
  if (!wanted || !chosen("read", path_of(descriptor))) return real_read(descriptor, bytes, count);
  errno = EIO;
  return -1;
}

/// The number of a folder's listings. libstdc++ opens a folder with openat() and then lists it.
extern "C" DIR* fdopendir(int descriptor) {
  static auto* const real_fdopendir = real<DIR*(int)>("fdopendir");
  if (setting("FAILING_FILES_CALL") != "list" || !chosen("list", path_of(descriptor)))
    return real_fdopendir(descriptor);
  errno = EIO;
  return nullptr;
}

extern "C" DIR* opendir(const char* path) {
  static auto* const real_opendir = real<DIR*(const char*)>("opendir");
  if (setting("FAILING_FILES_CALL") != "list" || !chosen("list", path)) return real_opendir(path);
  errno = EIO;
  return nullptr;
}

extern "C" int fsync(int descriptor) {
  static auto* const real_fsync = real<int(int)>("fsync");
  return chosen("fsync", path_of(descriptor)) ? fail() : real_fsync(descriptor);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static auto* const real_rename = real<int(const char*, const char*)>("rename");
  return chosen("rename", to) ? fail() : real_rename(from, to);
}
