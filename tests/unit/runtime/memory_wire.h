/// A wire between threads of one process, for tests: each thread plays a process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/processes/wire_team.h"

namespace pipewright::test {

/// Time that passes only as the keepers of all processes look around, 200 ms with each of their
/// rounds: for links whose speed a test decides. One test at a time.
std::chrono::steady_clock::time_point virtual_now();

/// One end for each of `size` processes. A send is complete when its receiver has taken it, as a
/// large MPI message. With a speed, everything from one process to another goes over one line at
/// that speed, in virtual time, notes too.
std::vector<std::unique_ptr<Wire>> memory_wires(int size, double bytes_per_second = 0);

/// Plays `size` processes: each a thread with a team of its own. Returns what each threw, settled.
struct Ended {
  std::unique_ptr<Error> error;
  bool spoke = false;
};
std::vector<Ended> play(int size, const std::function<void(WireTeam&)>& process,
                        TeamPatience patience = {}, const std::atomic<bool>* stop = nullptr,
                        const DeviceGroups::Find& nccl = find_nccl, double bytes_per_second = 0);

}  // namespace pipewright::test
