// SPDX-License-Identifier: Apache-2.0
// The `pipewright` program: finds the command, turns errors into one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/experiment/plugins.h"
#include "core/runtime/build_info.h"
#include "core/system/foreign_error.h"
#include "core/system/host_name.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/launch.h"
#include "tools/start/libtorch.h"

namespace pipewright {

std::vector<const Command*> commands() {
  return {&kRun,        &kSweep,     &kWatch,   &kCheck,    &kSchedule,  &kSimulate,
          &kSynthesize, &kStability, &kProfile, &kTable,    &kClaims,    &kPlot,
          &kReport,     &kExport,    &kCompare, &kTimeline, &kFetch,     &kList,
          &kDescribe,   &kSchema,    &kNew,     &kDoctor,   &kCompletion};
}

namespace {

void print_usage(std::FILE* where) {
  print_to(where,
           "Pipewright %s: a laboratory for pipeline-parallel training.\n\n"
           "  pipewright COMMAND …\n\n",
           build_info().version);
  for (const Command* command : commands())
    print_to(where, "  %-11s %s\n", command->name, command->summary);
  print_to(where,
           "\n`pipewright COMMAND --help` explains a command, `pipewright describe scheme "
           "NAME` a scheme.\n"
           "Exit codes: 0 fine, 2 the experiment is wrong, 3 data missing or damaged, or memory, "
           "threads or\n"
           "files ran out, 4 invalid schedule, 5 a worker failed, 6 not finite, 7 some runs of a "
           "sweep failed,\n"
           "70 a bug, 130 interrupted.\n");
}

int run_command(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    print_usage(arguments.empty() ? stderr : stdout);
    return arguments.empty() ? static_cast<int>(ErrorKind::Experiment) : 0;
  }
  if (arguments[0] == "--version") {
    print("pipewright %s, LibTorch %s\n", build_info().version, build_info().torch_version);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command* command : commands()) {
    names.emplace_back(command->name);
    if (arguments[0] != command->name) continue;
    return command->run({arguments.begin() + 1, arguments.end()});
  }
  throw Error(ErrorKind::Experiment,
              concat("there is no command '", arguments[0], "'", suggestion(arguments[0], names)));
}

/// The rank of this process of `run` among several that mpirun or srun has started; nothing for the
/// first, which reports errors as if it were alone, and for other commands, which are always single
/// processes.
std::optional<Launched> later_process(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != kRun.name) return std::nullopt;
  const std::optional<Launched> started = launched();
  return started && started->rank > 0 ? started : std::nullopt;
}

/// Waits 2 s, then returns the place to report. Before the processes are connected, the first one
/// reports errors that all of them find; it ends, and mpirun ends the others. A process that
/// survives the wait has an error of its own, such as a file that is missing on its host only.
std::string place_after_waiting(const Launched& started) {
  constexpr std::chrono::seconds kForTheFirst(2);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  std::this_thread::sleep_for(kForTheFirst);
  return concat("rank ", started.rank, " on ", host_name(), ": ");
}

/// Ends the message of an error that nobody expected while there is code of somebody else's.
std::string plugins_hint(const Error& error) {
  const bool expected = error.kind() != ErrorKind::Bug && error.kind() != ErrorKind::Worker;
  if (expected || loaded_plugins().empty()) return {};
  std::vector<std::string> files;
  for (const Plugin& plugin : loaded_plugins()) files.push_back(plugin.path.string());
  return concat("; plugins are loaded, and the fault may be theirs: ", join(files, ", "));
}

/// Prints an error and returns the exit code.
int report(const std::exception& thrown, const std::vector<std::string>& arguments) {
  try {
    const Error error = foreign_error(thrown);
    std::string place;
    if (const auto later = later_process(arguments)) {
      // Processes that cannot connect are all refused for that reason, which the first one reports.
      if (!later->connected) return static_cast<int>(error.kind());
      place = place_after_waiting(*later);
    }
    print_error("%s%s%s\n", place.c_str(), error.what(), plugins_hint(error).c_str());
    return static_cast<int>(error.kind());
  } catch (const std::exception&) {  // no memory left even for the message
  }
  try {
    print_error("memory ran out\n");
  } catch (const std::exception&) {
  }
  return static_cast<int>(ErrorKind::Data);
}

/// Opens /dev/null in the place of standard files that are closed, so that no file which the
/// program opens gets their numbers, and no process that it starts finds them missing.
void open_standard_files() {
  int opened = 0;
  do opened = ::open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= 2);
  if (opened > 2) ::close(opened);
}

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail like one on a full disk, so
/// that the error names the file and no part of it stays. Without this the system ends the process.
void report_file_limit() {
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Throws Error{Data} if the current folder has been removed: the loader of LibTorch's libraries
/// and relative paths need one.
void check_current_folder() {
  std::error_code failed;
  static_cast<void>(std::filesystem::current_path(failed));
  if (failed)
    throw Error(ErrorKind::Data, concat("the current folder is not there any more (",
                                        failed.message(), "); change into another one"));
}

/// The exit code of a command, or that of missing data if what it printed could not be written.
int written(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  const std::string why = errno != 0 ? concat(": ", std::strerror(errno)) : std::string();
  print_error("cannot write to standard output%s\n", why.c_str());
  return code == 0 ? static_cast<int>(ErrorKind::Data) : code;
}

/// Ends the process without the destructors of static objects, in which LibTorch would take back
/// each of its registrations: an eighth of a second.
[[noreturn]] void leave(int code) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(code);  // these report what they have found at the end
#else
  std::fflush(nullptr);
  ::_exit(code);
#endif
}

}  // namespace

int perform(const std::vector<std::string>& arguments) {
  try {
    return run_command(arguments);
  } catch (const std::exception& error) {
    return report(error, arguments);
  }
}

}  // namespace pipewright

int main(int count, char** values) {
  using namespace pipewright;
  try {
    open_standard_files();
    report_file_limit();
    check_current_folder();
    prepare_libtorch();
    leave(written(perform({values + 1, values + count})));
  } catch (const std::exception& error) {  // no memory for the arguments, or no current folder
    return report(error, {});
  }
}
