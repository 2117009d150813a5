// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/slurm_jobs.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/sweep/sweep_processes.h"
#include "core/system/child_process.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A job as sbatch prints it: "123" or, in a federation or with --clusters, "123;cluster".
struct Job {
  std::string number, cluster;
};

std::optional<Job> parsed_job(std::string_view line) {
  const std::vector<std::string> fields = split(trimmed(line), ';');
  if (fields.size() > 2 || !is_number(fields[0])) return std::nullopt;
  return Job{fields[0], fields.size() == 2 ? fields[1] : std::string()};
}

/// The line with the job in the output of sbatch, which may also print warnings and greetings.
std::optional<std::string> job_line(const std::string& output) {
  for (const std::string& line : split(output, '\n'))
    if (parsed_job(line)) return std::string(trimmed(line));
  return std::nullopt;
}

fs::path arrays_folder(const fs::path& sweep_folder) {
  return sweep_folder / "slurm";
}

/// The numbers of all arrays in the sweep's folder, ascending.
std::set<int> array_numbers(const fs::path& sweep_folder) {
  std::set<int> numbers;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(arrays_folder(sweep_folder), none)) {
    const std::string name = entry.path().filename().string();
    if (is_number(name)) numbers.insert(std::atoi(name.c_str()));
  }
  return numbers;
}

/// Output of one of Slurm's programs. If it cannot be started, the error is its output.
ChildOutput answer_of(const std::vector<std::string>& command) {
  constexpr std::size_t kLimit = std::size_t{64} << 20;  // bytes, for 4,000,001 tasks
  try {
    return output_of(command, kLimit);
  } catch (const Error& error) {
    return {.text = error.message()};
  }
}

/// Whether a state of Slurm is final. Unknown states are not.
bool is_over(const std::string& state) {
  static const std::set<std::string> kOver = {
      "BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
      "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return kOver.contains(state);
}

/// The states of the job's tasks. Tasks that Slurm does not list are over.
std::map<int, RunTask::State> task_states(const Job& job, const fs::path& folder) {
  // Asks for all states, because SQUEUE_STATES in the user's environment could hide some.
  std::vector<std::string> squeue{"squeue", "--noheader", "--array", "--states=all"};
  if (!job.cluster.empty()) squeue.push_back("--clusters=" + job.cluster);
  squeue.push_back("--jobs=" + job.number);
  squeue.emplace_back("--format=%F %K %T");
  const ChildOutput output = answer_of(squeue);
  // Slurm's message for a job that it has forgotten.
  if (output.end.code != 0 && output.text.find("Invalid job id") != std::string::npos) return {};
  if (output.end.code != 0)
    throw Error(ErrorKind::Worker,
                concat("cannot ask Slurm whether job ", job.number,
                       " is over: ", split(trimmed(output.text), '\n').back(),
                       "; ask where squeue works or, if it is over, delete this folder"),
                folder.string());
  std::map<int, RunTask::State> states;
  for (const std::string& line : split(output.text, '\n')) {
    const std::vector<std::string> fields = split(trimmed(line), ' ');
    if (fields.size() != 3 || fields[0] != job.number || !is_number(fields[1])) continue;
    if (is_over(fields[2])) continue;
    const bool pending = fields[2] == "PENDING";
    states[std::atoi(fields[1].c_str())] =
        pending ? RunTask::State::Pending : RunTask::State::Running;
  }
  return states;
}

Job recorded_job(const fs::path& folder) {
  std::optional<Job> job;
  if (fs::exists(folder / "job")) job = parsed_job(read_file(folder / "job"));
  if (job) return *job;
  throw Error(ErrorKind::Worker,
              "pipewright was stopped while sbatch was submitting this array, so its job is not "
              "known; if `squeue` shows none, delete this folder",
              folder.string());
}

void start_sbatch(SweepProcesses& processes, const fs::path& folder) {
  try {
    processes.start({"sbatch", "--parsable", (folder / "array.sh").string()},
                    folder / "sbatch.log");
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
}

/// Waits until sbatch has ended. Returns whether a signal came.
bool wait_for_sbatch(SweepProcesses& processes) {
  int interruptions = 0;
  for (;;) {
    const SweepProcesses::Event event = processes.wait(std::chrono::minutes(1));
    if (event.kind == SweepProcesses::Event::Kind::Ended) return interruptions > 0;
    if (event.kind != SweepProcesses::Event::Kind::Signal) continue;
    processes.interrupt(++interruptions);
  }
}

[[noreturn]] void refuse(const std::string& output, const fs::path& folder) {
  std::string said = join(split(trimmed(output), '\n'), "; ");
  if (said.empty()) said = "it said nothing";
  if (said.find("job array") != std::string::npos)
    said += "; --points-per-task makes the array shorter";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  throw Error(ErrorKind::Experiment, concat("sbatch did not submit the sweep: ", said));
}

}  // namespace

std::map<std::string, RunTask> ask_queue(const std::vector<PlannedRun>& unfinished,
                                         const fs::path& sweep_folder) {
  std::set<std::string> names;
  for (const PlannedRun& run : unfinished) names.insert(run.folder.filename().string());
  std::map<std::string, RunTask> tasks;
  const std::set<int> numbers = array_numbers(sweep_folder);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    const fs::path folder = arrays_folder(sweep_folder) / std::to_string(*number);
    if (!fs::exists(folder / "points.tsv")) continue;  // never submitted
    std::vector<ArrayPoint> points = read_points(folder / "points.tsv");
    std::erase_if(points, [&](const ArrayPoint& point) {
      return !names.contains(point.folder) || tasks.contains(point.folder);
    });
    if (points.empty()) continue;
    const Job job = recorded_job(folder);
    const std::map<int, RunTask::State> states = task_states(job, folder);
    for (const ArrayPoint& point : points) {
      const auto state = states.find(point.task);
      const bool over = state == states.end();
      tasks[point.folder] = {over ? RunTask::State::Over : state->second, job.number, point.task};
    }
  }
  return tasks;
}

fs::path next_array_folder(const fs::path& sweep_folder) {
  const std::set<int> numbers = array_numbers(sweep_folder);
  const int next = numbers.empty() ? 1 : *numbers.rbegin() + 1;
  const fs::path absolute = fs::absolute(sweep_folder).lexically_normal();
  return arrays_folder(absolute.has_filename() ? absolute : absolute.parent_path()) /
         std::to_string(next);
}

void check_slurm() {
  if (!program_on_path("sbatch").empty()) return;
  throw Error(ErrorKind::Experiment,
              "there is no sbatch on the PATH, so Slurm is not installed here; --dry-run shows the "
              "batch script, and without --slurm the sweep runs on this machine");
}

std::string submit_array(const std::vector<PlannedRun>& runs, const fs::path& folder,
                         const SlurmSettings& settings, const FolderLock&) {
  const std::string script = array_script(runs, folder, settings);
  for (const PlannedRun& run : runs) write_run_inputs(run, false);
  SweepProcesses processes;  // blocks signals: none can come between sbatch and writing `job`
  write_file(folder / "array.sh", script);
  write_file(folder / "points.tsv", points_text(array_points(runs, settings.points_per_task)));
  start_sbatch(processes, folder);
  const bool interrupted = wait_for_sbatch(processes);
  const std::string output = read_file(folder / "sbatch.log");
  const std::optional<std::string> job = job_line(output);
  if (job) {
    write_file(folder / "job", *job + "\n");
    return parsed_job(*job)->number;
  }
  if (!interrupted) refuse(output, folder);
  throw Error(ErrorKind::Interrupted,
              "interrupted before sbatch had said the job's number; if `squeue` shows no such job, "
              "delete this folder",
              folder.string());
}

}  // namespace pipewright
