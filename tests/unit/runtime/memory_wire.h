/// A wire between threads of one process, for tests: each thread plays a process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/wire_team.h"

namespace pipewright::test {

/// One end for each of `size` processes. A send is complete when its receiver has taken it, as a
/// large MPI message.
std::vector<std::unique_ptr<Wire>> memory_wires(int size);

/// Plays `size` processes: each a thread with a team of its own. Returns what each threw, settled.
struct Ended {
  std::unique_ptr<Error> error;
  bool spoke = false;
};
std::vector<Ended> play(int size, const std::function<void(WireTeam&)>& process,
                        TeamPatience patience = {}, const std::atomic<bool>* stop = nullptr,
                        const DeviceGroups::Find& nccl = find_nccl);

}  // namespace pipewright::test
