// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_runner.h"

#include <algorithm>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/experiment/plugins.h"
#include "core/records/run_claim.h"
#include "core/sweep/run_progress.h"
#include "core/sweep/sweep_processes.h"
#include "core/system/file.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// Whether the entry is a run folder of ours, or a profile that `run --point` leaves.
bool is_ours(const fs::directory_entry& entry) {
  std::error_code none;
  const fs::file_type type = entry.symlink_status(none).type();
  if (type == fs::file_type::directory)
    return fs::is_regular_file(fs::symlink_status(entry.path() / kFolderMarker, none));
  const std::string name = entry.path().filename().string();
  return type == fs::file_type::regular &&
         (name.starts_with("profile-") || name.starts_with("cut-")) && name.ends_with(".yaml");
}

bool holds_only_ours(const fs::path& folder) {
  std::error_code failed;
  bool any = false;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!is_ours(*entry)) return false;
    any = true;
  }
  return any && !failed;
}

/// The last line of a file after byte `start`; "" if there is none.
std::string last_line(const fs::path& log, std::uintmax_t start) {
  std::error_code ignored;
  if (fs::file_size(log, ignored) <= start || ignored) return {};
  const std::string text = read_file(log).substr(static_cast<std::size_t>(start));
  const std::string_view whole = trimmed(text);
  const std::size_t line = whole.find_last_of("\r\n");
  return std::string(trimmed(line == std::string_view::npos ? whole : whole.substr(line)));
}

std::string outcome_of(const SweepProcesses::Event& event) {
  if (event.signal != 0)
    return concat("killed by signal ", event.signal,
                  event.signal == SIGKILL ? " (out of memory?)" : "");
  if (event.exit_code != 0) return concat("exit code ", event.exit_code);
  return "ended without finishing";
}

/// A metric as tables show it: "test_accuracy 93.06 %", "test_loss 0.2501".
std::string shown(const std::string& metric, double value) {
  return concat(metric, " ", shown_number(metric, value), is_share(metric) ? " %" : "");
}

/// A sweep in progress.
class SweepExecution {
 public:
  SweepExecution(const std::vector<PlannedRun>& left, const SweepSettings& settings,
                 SweepProgress& progress)
      : left_(left), settings_(settings), progress_(progress) {}

  SweepResult run() {
    // From here on signals are events; an earlier one has set the flag.
    result_.interrupted = settings_.stop != nullptr && *settings_.stop;
    while (processes_.running() > 0 || (next_ < left_.size() && !result_.interrupted)) {
      const bool free = processes_.running() < static_cast<std::size_t>(settings_.jobs);
      if (free && next_ < left_.size() && !result_.interrupted)
        start(left_[next_++]);
      else
        handle(processes_.wait(std::chrono::seconds(1)));
    }
    return std::move(result_);
  }

 private:
  struct Child {
    const PlannedRun* run;
    std::uintmax_t log_start;
  };

  void start(const PlannedRun& run) {
    const fs::path log = run.folder / "log.txt";
    try {
      const fs::path given = write_run_inputs(run, settings_.overwrite);
      const std::vector<std::string> arguments{"run", given, "--out", run.folder,
                                               settings_.overwrite ? "--overwrite" : "--resume"};
      std::error_code none_yet;
      const std::uintmax_t size = fs::file_size(log, none_yet);
      children_[start_process(run, arguments, log)] = {&run, none_yet ? 0 : size};
      progress_.started(run.title);
    } catch (const Error& error) {
      fail({run.title, "not started", error.what()}, run);
    }
  }

  /// Starts the run in a copy of this process, which saves the half second in which LibTorch is
  /// loaded, or, where a copy could not work, as a program. A GPU's driver refuses copies of a
  /// process that has used it.
  pid_t start_process(const PlannedRun& run, const std::vector<std::string>& arguments,
                      const fs::path& log) {
    if (settings_.perform && run.on_cpus && is_single_threaded())
      return processes_.start([&] { return settings_.perform(arguments); }, log);
    std::vector<std::string> command = settings_.program;
    for (const auto& more : {arguments, plugin_arguments()})
      command.insert(command.end(), more.begin(), more.end());
    return processes_.start(command, log);
  }

  void handle(const SweepProcesses::Event& event) {
    using Kind = SweepProcesses::Event::Kind;
    if (event.kind == Kind::Nothing) tell_progress();
    if (event.kind == Kind::Ended) finish(event);
    if (event.kind != Kind::Signal) return;
    processes_.interrupt(++interruptions_);
    result_.interrupted = true;
    const std::string runs = counted(processes_.running(), "run");
    progress_.line(interruptions_ == 1 ? concat("interrupted; waiting for ", runs, " to save state")
                   : interruptions_ == 2 ? concat("interrupted again; waiting for ", runs,
                                                  " to save state; once more kills what is left")
                                         : concat("interrupted again; killing ", runs));
  }

  /// Looks into the logs of the runs under way.
  void tell_progress() {
    if (!progress_.shows_status()) return;
    for (const auto& [pid, child] : children_)
      progress_.progressed(child.run->title,
                           trained_share(child.run->folder / "log.txt", child.log_start));
    progress_.refresh();
  }

  void finish(const SweepProcesses::Event& event) {
    const Child child = children_.extract(event.child).mapped();
    const PlannedRun& run = *child.run;
    const RunRecord record = read_numbers(run.folder);
    const std::string recorded = state_recorded_by(run);
    if (event.exit_code == 0 && record.done()) {
      ++result_.done;
      const auto value = metric_of(record, settings_.metric, "last");
      progress_.ended(run.title, value ? shown(settings_.metric, *value) : "done", false);
    } else if (result_.interrupted && is_interruption(event, recorded)) {
      if (recorded == "running") note_interruption(run);
      progress_.ended(run.title, "interrupted", false);
    } else {
      fail(
          {run.title, outcome_of(event),
           of_this_run(last_line(run.folder / "log.txt", child.log_start), run), event.signal != 0},
          run);
    }
  }

  /// A run's last line, where its advice to give --overwrite, with which a sweep begins all runs
  /// anew, is the command for this run alone.
  std::string of_this_run(const std::string& line, const PlannedRun& run) const {
    const std::size_t advice = line.rfind("give ");
    if (!settings_.anew || advice == std::string::npos ||
        line.find("--overwrite", advice) == std::string::npos)
      return line;
    return concat(line.substr(0, advice), "`", settings_.anew(run), "` begins it anew");
  }

  /// The state that the run itself has recorded last: "running" of one that was killed. "failed"
  /// where its record cannot be read.
  static std::string state_recorded_by(const PlannedRun& run) {
    try {
      return RunFolder(run.folder).state();
    } catch (const Error&) {
      return "failed";
    }
  }

  /// Whether a run was interrupted, even if our signal came before it could record that.
  static bool is_interruption(const SweepProcesses::Event& event, const std::string& recorded) {
    return recorded == "interrupted" || event.signal == SIGINT || event.signal == SIGKILL ||
           event.exit_code == static_cast<int>(ErrorKind::Interrupted);
  }

  /// Records the interruption for a run that ended before it could do so itself.
  static void note_interruption(const PlannedRun& run) {
    try {
      const RunFolder folder(run.folder);
      const FolderLock lock = claim(folder, {.resume = true});
      Value state = load_json(run.folder / "run.json");
      state.at_or_add("state") = Value::of("interrupted");
      folder.write_state(state);
    } catch (const Error&) {
      // The state remains "running", which --resume continues, too.
    }
  }

  /// Reports a failed run, and records the failure in its folder if the run has not done so.
  void fail(const FailedRun& failed, const PlannedRun& run) {
    const std::string state = state_recorded_by(run);
    if (state == "running" || state == "missing") {
      try {
        const FolderLock lock(run.folder);
        PointEntry entry = run.entry();
        entry.error = failed.reason();
        write_point(run.folder, entry);
      } catch (const Error&) {
        // The disk may be why the run failed. The list of failures reports it in any case.
      }
    }
    result_.failed.push_back(failed);
    progress_.ended(run.title, concat("failed, ", failed.reason()), true);
  }

  const std::vector<PlannedRun>& left_;
  const SweepSettings& settings_;
  SweepProgress& progress_;
  SweepProcesses processes_;
  std::map<pid_t, Child> children_;
  std::size_t next_ = 0;
  int interruptions_ = 0;
  SweepResult result_;
};

}  // namespace

std::string FailedRun::reason() const {
  if (last_line.empty()) return outcome;
  return concat(outcome, killed ? ", after: " : ": ", last_line);
}

FolderLock claim_sweep(const fs::path& folder) {
  return FolderLock(folder, {.adopt = holds_only_ours(folder), .inherited = true});
}

std::vector<PlannedRun> runs_to_do(const std::vector<PlannedRun>& runs,
                                   const SweepSettings& settings) {
  if (settings.overwrite) return runs;
  std::vector<PlannedRun> left, other, done;
  for (const PlannedRun& run : runs) {
    const RunOutcome found = read_outcome(run.folder);
    const bool ours = found.digest.empty() || found.digest == run.digest;
    (!ours ? other : found.done() ? done : left).push_back(run);
  }
  if (!other.empty())
    throw Error(ErrorKind::Experiment,
                concat(counted(other.size(), "folder"),
                       other.size() == 1 ? " holds a run" : " hold runs", " of other options (",
                       other.size() == 1 ? "" : "first ", other.front().folder.filename().string(),
                       "); give --overwrite to begin anew, or another --out"),
                settings.out.string());
  if (!done.empty() && !settings.resume)
    throw Error(ErrorKind::Experiment,
                concat("the folder holds ", counted(done.size(), "finished run"),
                       " of this sweep; give --resume to ",
                       left.empty() ? std::string("collect the results again")
                                    : concat("keep ", done.size() == 1 ? "it" : "them",
                                             " and run the other ", left.size()),
                       ", --overwrite to begin anew, or another --out"),
                settings.out.string());
  return left;
}

SweepResult run_sweep(const std::vector<PlannedRun>& left, const SweepSettings& settings,
                      SweepProgress& progress, const FolderLock&) {
  PIPEWRIGHT_CHECK(settings.jobs >= 1);
  return SweepExecution(left, settings, progress).run();
}

int default_jobs(const std::vector<PlannedRun>& runs) {
  int needed = 1;
  for (const PlannedRun& run : runs) needed = std::max(needed, run.cores);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / needed);
}

}  // namespace pipewright
