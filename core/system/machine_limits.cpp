// SPDX-License-Identifier: Apache-2.0
#include "core/system/machine_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/error_at.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;
constexpr double kNotKnown = std::numeric_limits<double>::infinity();

/// The entry `name` of /proc/meminfo, in bytes.
double meminfo(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (double kib = 0; file >> key >> kib; file.ignore(1 << 10, '\n'))
    if (key.size() == name.size() + 1 && key.starts_with(name)) return kib * 1024;
  return kNotKnown;
}

/// The number in a file of a control group; infinity if it holds "max" or cannot be read.
double number_in(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? number : kNotKnown;
}

/// The smallest limit of this process's control group and all groups above it. `controller` is
/// "memory" or "pids"; `file` and `old_file` are the limit's names in control groups of version 2
/// and 1.
double least_in_groups(const std::string& controller, const char* file, const char* old_file) {
  std::ifstream groups("/proc/self/cgroup");
  double least = kNotKnown;
  for (std::string line; std::getline(groups, line);) {
    const auto parts = split(line, ':');  // number, controllers, path
    if (parts.size() < 3) continue;
    const bool unified = parts[1].empty();
    const auto of = split(parts[1], ',');
    if (!unified && std::find(of.begin(), of.end(), controller) == of.end()) continue;
    const fs::path root = concat("/sys/fs/cgroup/", unified ? "" : controller);
    fs::path group = fs::path(parts[2]).relative_path();
    for (;; group = group.parent_path()) {  // ends at the root, which is visible in containers, too
      least = std::min(least, number_in(root / group / (unified ? file : old_file)));
      if (group.empty()) break;
    }
  }
  return least;
}

double resource_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return kNotKnown;
  return limit.rlim_cur == RLIM_INFINITY ? kNotKnown : static_cast<double>(limit.rlim_cur);
}

MemoryLimit limit_of(double bytes, std::string_view owner) {
  if (bytes == kNotKnown) return {kNotKnown, ""};
  return {bytes, concat(owner, " ", bytes_text(bytes))};
}

}  // namespace

MemoryLimit machine_memory() {
  const double swap = meminfo("SwapTotal");
  return limit_of(meminfo("MemTotal") + (swap == kNotKnown ? 0 : swap), "this machine has");
}

MemoryLimit memory_limit() {
  MemoryLimit least = machine_memory();
  for (const MemoryLimit& other :
       {limit_of(least_in_groups("memory", "memory.max", "memory.limit_in_bytes"),
                 "the control group allows"),
        limit_of(resource_limit(RLIMIT_AS), "ulimit -v allows"),
        limit_of(resource_limit(RLIMIT_DATA), "ulimit -d allows")})
    if (other.bytes < least.bytes) least = other;
  return least;
}

double free_memory() {
  const double swap = meminfo("SwapFree");
  return meminfo("MemAvailable") + (swap == kNotKnown ? 0 : swap);
}

std::string threads_limit_text() {
  const double user = resource_limit(RLIMIT_NPROC);
  const double group = least_in_groups("pids", "pids.max", "pids.max");
  if (user == kNotKnown && group == kNotKnown) return {};
  if (group < user) return concat(" (the control group allows ", group, " processes and threads)");
  return concat(" (this user may have ", user, " processes and threads, ulimit -u)");
}

std::string files_limit_text() {
  return concat(" (this process may have ", resource_limit(RLIMIT_NOFILE),
                " files open, ulimit -n)");
}

void refuse_file(const std::filesystem::path& path, std::string_view what, int code) {
  throw data_error(path, what, ": ", errno_text(code));
}

std::string errno_text(int code) {
  const std::string text = std::strerror(code);
  return code == EMFILE ? text + files_limit_text() : text;
}

}  // namespace pipewright
