// SPDX-License-Identifier: Apache-2.0
/// A wire in memory for tests, on which each thread of one process plays a process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/processes/wire_team.h"

namespace pipewright::test {

/// Virtual time, for links whose speed a test decides: it advances by 200 ms with each round of the
/// keepers of all processes. For one test at a time.
std::chrono::steady_clock::time_point virtual_now();

/// One end for each of `size` processes. A send completes when its receiver has received it, as for
/// a large MPI message. With a speed, all pieces and notes from one process to another share one
/// line of that speed in virtual time.
std::vector<std::unique_ptr<Wire>> memory_wires(int size, double bytes_per_second = 0);

/// Result of playing `size` processes, each a thread with a team of its own: what each threw, after
/// agree_on().
struct Ended {
  std::unique_ptr<Error> error;
  bool spoke = false;
};
std::vector<Ended> play(int size, const std::function<void(WireTeam&)>& process,
                        TeamPatience patience = {}, const std::atomic<bool>* stop = nullptr,
                        const DeviceGroups::Find& nccl = find_nccl, double bytes_per_second = 0);

}  // namespace pipewright::test
