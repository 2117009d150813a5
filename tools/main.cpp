// The `pipewright` program: finds the command, turns errors into one line and an exit code.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>

#include "core/base/error.h"
#include "core/base/terminal.h"
#include "core/runtime/allocation.h"
#include "core/runtime/build_info.h"
#include "tools/command.h"
#include "tools/launch.h"

namespace pipewright {
namespace {

std::vector<const Command*> commands() {
  return {&kRun,  &kSweep, &kCheck, &kSchedule, &kSimulate, &kProfile, &kTable,
          &kPlot, &kFetch, &kList,  &kDescribe, &kSchema,   &kDoctor};
}

void print_usage(std::FILE* where) {
  print_to(where,
           "Pipewright %s: a laboratory for pipeline-parallel training.\n\n"
           "  pipewright COMMAND …\n\n",
           build_info().version);
  for (const Command* command : commands())
    print_to(where, "  %-10s %s\n", command->name, command->summary);
  print_to(where,
           "\n`pipewright COMMAND --help` explains a command, `pipewright describe scheme "
           "NAME` a scheme.\n"
           "Exit codes: 0 fine, 2 the experiment is wrong, 3 data missing or damaged, 4 "
           "invalid schedule,\n"
           "5 a worker failed, 6 not finite, 7 some runs of a sweep failed, 70 a bug, 130 "
           "interrupted.\n");
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
    if (arguments[0] == command->name)
      return command->run({arguments.begin() + 1, arguments.end()});
  }
  throw Error(ErrorKind::Experiment,
              concat("there is no command '", arguments[0], "'", suggestion(arguments[0], names)));
}

}  // namespace
}  // namespace pipewright

int main(int count, char** values) {
  using pipewright::Error;
  using pipewright::ErrorKind;
  using pipewright::print_error;
  pipewright::keep_freed_memory();
  try {
    return pipewright::run_command({values + 1, values + count});
  } catch (const Error& error) {
    const auto started = pipewright::launched();  // what all processes find, the first one says
    if (!started || started->rank == 0) print_error("%s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    print_error("this is a bug in Pipewright: %s\n", error.what());
    return static_cast<int>(ErrorKind::Bug);
  }
}
