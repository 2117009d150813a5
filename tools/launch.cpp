// SPDX-License-Identifier: Apache-2.0
#include "tools/launch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/processes/mpi_wire.h"
#include "core/processes/start_watch.h"
#include "core/processes/start_words.h"
#include "core/system/child_process.h"
#include "core/system/host_name.h"
#include "tools/interrupt.h"

namespace pipewright {
namespace {

/// Environment variable of the processes that we start: their number.
constexpr const char* kOwnLaunch = "PIPEWRIGHT_PROCESSES";
/// Seconds between the signals with which mpirun ends a process: SIGCONT, SIGTERM, SIGKILL. The
/// processes notice within the first second that one has died, and end by themselves.
constexpr const char* kKillSteps = "1";
/// Time that they have to end before mpirun gets SIGTERM.
constexpr std::chrono::seconds kGrace{5};

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::atoi(text);
}

/// mpirun and its options.
std::vector<std::string> mpirun_command(int processes, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"mpirun", "--oversubscribe", "--bind-to", "none"};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  command.emplace_back("-n");
  command.push_back(std::to_string(processes));
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// What mpirun and the processes find in their environment. Open MPI 4 and 5 (PRRTE) have other
/// names for options of the same meaning, but take both from here.
std::vector<std::pair<std::string, std::string>> environment(int processes, const StartEar& ear) {
  return {{kOwnLaunch, std::to_string(processes)},
          ear.variable(),
          {"OMPI_MCA_orte_execute_quiet", "1"},
          {"OMPI_MCA_odls_base_sigkill_timeout", kKillSteps},
          {"PRTE_MCA_odls_base_sigkill_timeout", kKillSteps}};
}

/// Whether an exit code of mpirun, which is that of the first process that failed, is one of ours.
/// Others are 128 + the signal that ended it, and mpirun's own.
bool is_ours(int code) {
  constexpr std::array known{0, 2, 3, 4, 5, 6, 70, 130};
  return std::ranges::count(known, code) > 0;
}

/// The processes of a run, from their start under mpirun to their end.
class Processes {
 public:
  using Clock = StartPatience::Clock;

  Processes(int count, const std::vector<std::string>& arguments, const StartPatience& patience)
      : watch_(count, host_name(), patience),
        mpirun_(mpirun_command(count, arguments),
                // mpirun passes this signal on and lets the processes end.
                {.environment = environment(count, ear_),
                 .own_group = true,
                 .at_our_end = kStopSignal}) {}

  /// How mpirun has ended, or nothing while it runs. Looks after start and end until then.
  std::optional<ChildEnd> poll() {
    const auto end = mpirun_.poll();
    while (const auto word = ear_.hear()) watch_.hear(*word);
    if (!end && (!watch_.over() || watch_.ending())) look_after();
    return end;
  }

  /// Ends them, gently at first; to be called again and again.
  void end() {
    if (!grace_ends_) {
      mpirun_.signal(kStopSignal);
      grace_ends_ = Clock::now() + kGrace;
    }
    if (ending_ || Clock::now() < *grace_ends_) return;
    mpirun_.signal(SIGTERM);
    ending_ = true;
  }

  const StartWatch& start() const { return watch_; }

 private:
  void look_after() {
    const auto now = Clock::now();
    if (grace_ends_) return end();
    watch_.look(started_by(mpirun_.pid()), now);
    if (watch_.stopped() > 0) ::kill(watch_.stopped(), SIGKILL);
    if (watch_.lost()) grace_ends_ = now + kGrace;  // mpirun ends the others by itself
    if (watch_.late()) grace_ends_ = now;           // MPI does not react to gentle signals
  }

  StartEar ear_;
  StartWatch watch_;
  ChildProcess mpirun_;
  std::optional<Clock::time_point> grace_ends_;  ///< when mpirun gets SIGTERM
  bool ending_ = false;
};

}  // namespace

std::optional<Launched> launched() {
  const auto first = [](std::initializer_list<const char*> variables) -> std::optional<int> {
    for (const char* const variable : variables)
      if (const auto number = number_in(variable)) return number;
    return std::nullopt;
  };
  if (const auto rank = first({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}))
    return Launched{*rank,
                    first({"OMPI_COMM_WORLD_SIZE", kOwnLaunch, "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
                        .value_or(1)};
  // A task with a terminal is an interactive shell of srun: its commands are single processes.
  if (const int tasks = number_in("SLURM_STEP_NUM_TASKS").value_or(1); tasks > 1 && !::isatty(0))
    return Launched{number_in("SLURM_PROCID").value_or(0), tasks, false};
  return std::nullopt;
}

void check_processes(const Experiment& experiment, const Launched& started) {
  const int size = started.size;
  const int workers = experiment.shape(1).workers();
  const bool mpi = experiment.pipeline.execution == Execution::Mpi;
  if (!mpi && size > 1)
    throw Error(ErrorKind::Experiment,
                concat(size,
                       " processes were started, but this execution is one process; use "
                       "execution: mpi, or start it without mpirun"),
                experiment.where("pipeline.execution"));
  if (!started.connected)
    throw Error(
        ErrorKind::Experiment,
        concat("srun started ", size,
               " processes that cannot find each other; use srun --mpi=pmix (srun "
               "--mpi=list says whether it is there) or, within sbatch or salloc, mpirun -n ",
               workers),
        experiment.where("pipeline.execution"));
  if (mpi && size != workers)
    throw Error(
        ErrorKind::Experiment,
        concat("execution: mpi needs ", counted(workers, "process"), ", one per worker, but ", size,
               size == 1 ? " was" : " were", " started; use mpirun -n ", workers),
        experiment.where("pipeline.execution"));
}

LaunchEnd launch_processes(int processes, const std::vector<std::string>& arguments,
                           std::chrono::milliseconds timeout) {
  const std::atomic<bool>* const stop = interrupt_flag();
  if (program_on_path("mpirun").empty())
    throw Error(ErrorKind::Experiment,
                "execution: mpi needs mpirun, which is not on the PATH; install openmpi-bin");
  StartPatience patience;
  patience.connecting = std::max<StartPatience::Clock::duration>(patience.connecting, timeout);
  // Ctrl-C reaches only this process, which passes it on once.
  Processes started(processes, arguments, patience);
  std::optional<ChildEnd> end;
  while (!(end = started.poll())) {
    if (*stop) started.end();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int code = end->signal != 0 ? 128 + end->signal : end->code;
  constexpr int kInterrupted = static_cast<int>(ErrorKind::Interrupted);
  const StartWatch& start = started.start();
  if (code == 0) return {};
  if (*stop || code == kInterrupted) return {.code = kInterrupted, .said = start.said()};
  const bool watched = !start.over() || start.ending();
  if (!start.said() && watched && (start.stopped() > 0 || start.late() || !is_ours(code)))
    throw start.error(code);
  return {.code = is_ours(code) ? code : static_cast<int>(ErrorKind::Worker)};
}

}  // namespace pipewright
