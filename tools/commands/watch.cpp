// SPDX-License-Identifier: Apache-2.0
// `pipewright watch`: the states of the runs of a sweep, until all have ended.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/sweep/sweep_watch.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/results.h"

namespace pipewright {
namespace {

using Clock = std::chrono::steady_clock;

/// Sleeps for a second, or ten times as long as a look takes; less after a signal.
void rest(Clock::duration look, const std::atomic<bool>& stop) {
  const Clock::time_point end =
      Clock::now() + std::max<Clock::duration>(std::chrono::seconds(1), 10 * look);
  while (!stop && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

/// The states at the end, and each run that is not done.
void print_end(const WatchedSweep& sweep) {
  print("%s: %s\n", counted(sweep.runs.size(), "run").c_str(), state_text(sweep).c_str());
  for (const WatchedRun& run : sweep.runs)
    if (run.state != "done")
      print("  %s: %s%s%s\n", run.name.c_str(), run.state.c_str(), run.error.empty() ? "" : ", ",
            run.error.c_str());
}

int run_watch(const std::vector<std::string>& arguments) {
  CommandLine line(
      kWatch,
      "Watches the runs of a sweep, or one run, that another process performs in DIR. On a "
      "terminal it shows one line: how many runs are in which state, and how far each running one "
      "has come. Elsewhere it prints a line whenever the state of a run changes. It ends when no "
      "process works in the folder any more; then it prints the state of every run that is not "
      "done, and why those that failed did. It only reads files, so Ctrl-C ends the watching and "
      "not the runs. A run that a cluster has not started yet is not shown, because it has no "
      "folder.");
  line.positional("DIR", "the folder of a sweep or of a run", 1, 1);
  line.where();
  if (!line.parse(arguments)) return 0;
  const std::filesystem::path folder = run_in(line.text("DIR"), line);
  const std::atomic<bool>& stop = *interrupt_flag();
  WatchedSweep before;
  {
    StatusLine status(stderr);
    while (!stop) {
      const Clock::time_point begin = Clock::now();
      WatchedSweep now = look_at(folder);
      status.show(state_text(now));
      if (!status.terminal())
        for (const std::string& change : changes_since(before, now))
          print_error("%s\n", change.c_str());
      before = std::move(now);
      if (!before.at_work) break;
      rest(Clock::now() - begin, stop);
    }
  }
  if (stop) throw Error(ErrorKind::Interrupted, "interrupted; the runs go on");
  print_end(before);
  return 0;
}

}  // namespace

const Command kWatch{"watch", "watch DIR [--where S]",
                     "the states of the runs of a sweep, until all have ended", run_watch};

}  // namespace pipewright
