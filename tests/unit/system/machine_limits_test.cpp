// SPDX-License-Identifier: Apache-2.0
// Limits are those of the system, and the least of them counts.
#include "core/system/machine_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

namespace pipewright {
namespace {

/// A limit for as long as it lives.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    ::getrlimit(resource, &before_);
    const rlimit limit{most, before_.rlim_max};
    ::setrlimit(resource, &limit);
  }
  ~Limited() { ::setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

TEST(MachineLimits, TheMachineHasMoreThanIsFree) {
  EXPECT_GT(machine_memory().bytes, 0);
  EXPECT_LE(memory_limit().bytes, machine_memory().bytes);
  EXPECT_LE(free_memory(), machine_memory().bytes);
  EXPECT_TRUE(machine_memory().text.starts_with("this machine has "));
}

TEST(MachineLimits, AnAddressSpaceThatIsLimitedCounts) {
  const Limited limited(RLIMIT_AS, rlim_t{1} << 33);
  const MemoryLimit limit = memory_limit();
  EXPECT_LE(limit.bytes, 8.0 * (1 << 30));
  if (limit.bytes == 8.0 * (1 << 30)) {
    EXPECT_EQ(limit.text, "ulimit -v allows 8.00 GiB");
  }
}

TEST(MachineLimits, AreSaidBehindTheReason) {
  const Limited files(RLIMIT_NOFILE, 100);
  EXPECT_EQ(errno_text(EMFILE),
            "Too many open files (this process may have 100 files open, ulimit -n)");
  EXPECT_EQ(errno_text(EACCES), "Permission denied");
  const Limited threads(RLIMIT_NPROC, 50);
  EXPECT_EQ(threads_limit_text(), " (this user may have 50 processes and threads, ulimit -u)");
}

}  // namespace
}  // namespace pipewright
