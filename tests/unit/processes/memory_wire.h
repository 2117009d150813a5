// SPDX-License-Identifier: Apache-2.0
/// A wire in memory for tests, on which each thread of one process plays a process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/processes/wire_team.h"

namespace pipewright::test {

/// Virtual time, for links whose speed a test decides and for patience that does not depend on the
/// machine: it advances by 200 ms with each round of the keepers of all processes, so a slow keeper
/// is waited for. For one test at a time.
std::chrono::steady_clock::time_point virtual_now();

/// One end for each of `size` processes. A send completes when its receiver has received it, as for
/// a large MPI message. With a speed, all pieces and notes from one process to another share one
/// line of that speed in virtual time.
std::vector<std::unique_ptr<Wire>> memory_wires(int size, double bytes_per_second = 0);

/// A process that takes part in virtual time and does nothing else: it hears all notes and neither
/// beats nor answers.
class SilentProcess {
 public:
  explicit SilentProcess(Wire& wire)
      : thread_([&wire](const std::stop_token& over) {
          while (!over.stop_requested()) {
            wire.hear();
            std::this_thread::yield();
          }
        }) {}

 private:
  std::jthread thread_;
};

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
