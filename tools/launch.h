/// Runs as several processes: whether this process is one of them, and starting them.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// What mpirun or srun said to this process when it started it.
struct Launched {
  int rank = 0, size = 1;
  bool connected = true;  ///< false: srun started several that cannot find each other
};
std::optional<Launched> launched();

/// Throws Error{Experiment} unless those processes can execute the experiment.
void check_processes(const Experiment& experiment, const Launched& started);

/// What launch_processes() stops the processes with; they ask for it to be a reason to end well.
inline constexpr int kStopSignal = SIGUSR1;

/// Starts `processes` times `pipewright ARGUMENTS` under mpirun and waits for them. Signals are
/// passed on. Returns an exit code of the contract. Throws Error{Experiment} without mpirun.
int launch_processes(int processes, const std::vector<std::string>& arguments);

}  // namespace pipewright
