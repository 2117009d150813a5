// SPDX-License-Identifier: Apache-2.0
/// Runs with several processes: detects whether this is one of them, and starts them.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The environment in which mpirun or srun has started this process.
struct Launched {
  int rank = 0, size = 1;
  bool connected = true;  ///< false: srun started several processes without a way to connect
};
/// Nothing if the process was not started as one of several.
std::optional<Launched> launched();

/// Throws Error{Experiment} unless so many processes can execute the experiment.
void check_processes(const Experiment& experiment, const Launched& started);

/// The signal with which launch_processes() stops the processes; they must set it with
/// interrupt_on().
inline constexpr int kStopSignal = SIGUSR1;

/// How a run of several processes has ended.
struct LaunchEnd {
  int code = 0;  ///< one of our exit codes
  bool said =
      true;  ///< false: it was interrupted, which its processes leave to the launcher to say
};

/// Starts `pipewright ARGUMENTS` in so many processes under mpirun, waits for them, and passes
/// signals on. Throws Error{Experiment} without mpirun. Until their team speaks for itself, throws
/// Error{Worker} that names the process that has died or is stopped, or says that MPI has not
/// connected them within a minute, or `timeout` if that is longer.
LaunchEnd launch_processes(int processes, const std::vector<std::string>& arguments,
                           std::chrono::milliseconds timeout);

}  // namespace pipewright
