// SPDX-License-Identifier: Apache-2.0
/// Processor time: on a shared machine the wall clock counts the neighbours too.
#pragma once

#include <ctime>

namespace pipewright::bench {

/// Seconds that all threads of this process have worked so far.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace pipewright::bench
