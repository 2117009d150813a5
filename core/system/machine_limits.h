/// What the machine and its limits allow a process: memory, threads, open files. Messages name
/// these where one of them has run out.
#pragma once

#include <string>

namespace pipewright {

/// The most memory that can be had, and who says so.
struct MemoryLimit {
  double bytes = 0;  ///< infinity: not known
  std::string text;  ///< "this machine has 23.40 GiB", "ulimit -v allows 1.00 GiB"; "" = not known
};

/// The least of the machine's memory and swap, the control groups' limits, and the process's own
/// (RLIMIT_AS, RLIMIT_DATA). Reads /proc and /sys/fs/cgroup anew each time. Any thread.
MemoryLimit memory_limit();
/// Of the machine alone, which its processes share.
MemoryLimit machine_memory();
/// Bytes that can be had now without taking them from other processes; infinity: not known.
double free_memory();

/// " (this user may have 512 processes and threads, ulimit -u)"; "" where nothing limits them.
std::string threads_limit_text();
/// " (this process may have 64 files open, ulimit -n)"
std::string files_limit_text();

/// The system's words for an errno, with the limit behind it where one was reached.
std::string errno_text(int code);

}  // namespace pipewright
