// SPDX-License-Identifier: Apache-2.0
/// The limits of the machine for a process: memory, threads, open files. Error messages name the
/// limit that was reached.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pipewright {

/// The most memory that a process can get, and which limit says so.
struct MemoryLimit {
  double bytes = 0;  ///< infinity if not known
  std::string text;  ///< "this machine has 23.40 GiB", "ulimit -v allows 1.00 GiB"; "" if not known
};

/// The smallest of the machine's memory and swap, the control groups' limits, and the process's own
/// limits (RLIMIT_AS, RLIMIT_DATA). Reads /proc and /sys/fs/cgroup anew each time. Any thread may
/// call it.
MemoryLimit memory_limit();
/// The machine's memory and swap, which all its processes share.
MemoryLimit machine_memory();
/// Bytes of memory and swap available now; infinity if not known.
double free_memory();

/// " (this user may have 512 processes and threads, ulimit -u)"; "" where nothing limits them.
std::string threads_limit_text();
/// " (this process may have 64 files open, ulimit -n)"
std::string files_limit_text();

/// Throws Error{Data} for a file with what failed and the text of the errno `code`: "cannot open:
/// No such file or directory".
[[noreturn]] void refuse_file(const std::filesystem::path& path, std::string_view what, int code);

/// The system's text for an errno, followed by the limit on open files for EMFILE.
std::string errno_text(int code);

}  // namespace pipewright
