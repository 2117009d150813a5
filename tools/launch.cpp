#include "tools/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/runtime/mpi_wire.h"
#include "tools/interrupt.h"

namespace pipewright {
namespace {

/// Set for the processes we start ourselves.
constexpr const char* kOwnLaunch = "PIPEWRIGHT_PROCESSES";
/// Seconds the processes have after a signal, to write down how the run ended.
constexpr const char* kGrace = "2";

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::atoi(text);
}

std::vector<std::string> mpirun_command(int processes, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"mpirun", "--quiet"};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  for (const char* const word :
       {"--oversubscribe", "--bind-to", "none", "--mca", "odls_base_sigkill_timeout", kGrace, "-n"})
    command.emplace_back(word);
  command.push_back(std::to_string(processes));
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

[[noreturn]] void become(const std::vector<std::string>& command, int processes) {
  ::setpgid(0, 0);  // Ctrl-C comes to us; we pass it on once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setenv(kOwnLaunch, std::to_string(processes).c_str(), 1);
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

/// mpirun's own code: of the first process that failed, or 128 + the signal that ended it.
int contract_code(int status, bool interrupted) {
  if (interrupted) return static_cast<int>(ErrorKind::Interrupted);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  constexpr std::array known{0, 2, 3, 4, 5, 6, 70, 130};
  return std::ranges::count(known, code) > 0 ? code : static_cast<int>(ErrorKind::Worker);
}

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
  // Whoever types into one of several tasks is alone with it.
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
    throw Error(ErrorKind::Experiment,
                concat("needs ", workers, workers == 1 ? " process" : " processes",
                       ", one per worker, and ", size, size == 1 ? " was" : " were",
                       " started; use mpirun -n ", workers),
                experiment.where("pipeline.execution"));
}

int launch_processes(int processes, const std::vector<std::string>& arguments) {
  const std::atomic<bool>* const stop = interrupt_flag();
  const auto command = mpirun_command(processes, arguments);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorKind::Worker, "mpirun cannot be started");
  if (child == 0) become(command, processes);
  bool told = false;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(child, &status, told ? 0 : WNOHANG);
    if (ended == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        throw Error(ErrorKind::Experiment,
                    "execution: mpi needs mpirun, which is not on the PATH; install openmpi-bin");
      return contract_code(status, *stop);
    }
    if (*stop && !told) {
      ::kill(child, SIGTERM);
      told = true;
    }
    if (!told) ::usleep(20'000);
  }
}

}  // namespace pipewright
