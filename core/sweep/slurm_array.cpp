// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/slurm_array.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/wording.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// The body of the batch script, the same for all sweeps: points.tsv has what differs. Slurm's
/// signals reach the run as well as this script. A run of several processes starts mpirun, which
/// reads Slurm's allocation.
constexpr const char* kBody = R"(
# One run, which prints into its own log. A finished one is left alone, an interrupted one goes on.
run() { # FOLDER
  "$pipewright" run "$sweep/$1/.experiment.yaml" --out "$sweep/$1" --resume \
    </dev/null >>"$sweep/$1/log.txt" 2>&1
}

# At a time limit or scancel the run ends and keeps its last checkpoint; this script waits for it and starts no other.
stopped=
trap 'stopped=1' TERM INT

# The runs of this task in turn; one that fails does not stop the others.
failed=0
while IFS=$'\t' read -r task folder title; do
  if [ "$task" != "$SLURM_ARRAY_TASK_ID" ] || [ "$stopped" ]; then continue; fi
  run "$folder"
  code=$?
  echo "$title: exit code $code"
  [ "$code" = 0 ] || failed=1
done <"$points" || failed=1
exit "$failed"
)";

/// Replaces control characters, so that a text fits into one field of one line.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

/// Quotes a value for an #SBATCH line, whose rules are not quite those of the shell.
std::string sbatch_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The folder as a file name pattern of sbatch, in which % is escaped. Throws for a name with \ or
/// a line break, which a pattern cannot have.
std::string pattern_of(const fs::path& folder) {
  std::string out;
  for (const char c : folder.string()) {
    if (c == '\\' || c == '\n' || c == '\r')
      throw Error(ErrorKind::Experiment,
                  "sbatch cannot be given this folder for its logs; choose one with --out whose "
                  "path has no line breaks and no backslashes",
                  one_line(folder.string()));
    out += c == '%' ? std::string("%%") : std::string(1, c);
  }
  return out;
}

struct Resources {
  int tasks = 1;
  int cores_per_task = 1;
  int gpus = 0;
  bool gpus_on_one_node = false;  ///< because one process uses them
};

Resources resources_of(const std::vector<PlannedRun>& runs) {
  Resources most;
  for (const PlannedRun& run : runs) {
    const int processes = std::max(1, run.processes);
    most.tasks = std::max(most.tasks, processes);
    most.cores_per_task = std::max(most.cores_per_task, run.cores / processes);
    most.gpus = std::max(most.gpus, run.gpus);
    most.gpus_on_one_node = most.gpus_on_one_node || (run.gpus > 0 && processes == 1);
  }
  return most;
}

/// Whether an option of the user's says which GPUs, so that ours would contradict it.
bool asks_for_gpus(const std::string& option) {
  const std::vector<std::string> words = split(option, ' ');
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("--gres") || word.starts_with("--gpus") || word.starts_with("-G");
  });
}

/// The line that asks for GPUs; "" where none are needed. --gres counts those of each node, --gpus
/// those of all nodes together. Not --gpus-per-task: mpirun starts one process on each node, which
/// would see the GPUs of one task only.
std::string gpu_line(const Resources& resources, const SlurmSettings& settings) {
  if (resources.gpus == 0 || std::ranges::any_of(settings.options, asks_for_gpus)) return {};
  const std::string_view option = resources.gpus_on_one_node ? "--gres=gpu:" : "--gpus=";
  return concat("\n#SBATCH ", option, resources.gpus);
}

std::string header(const std::vector<PlannedRun>& runs, const fs::path& folder,
                   const SlurmSettings& settings) {
  const std::string name = one_line(settings.name);
  const int tasks = array_points(runs, settings.points_per_task).back().task;
  const Resources resources = resources_of(runs);
  const std::string throttle =
      settings.tasks_at_once > 0 ? concat("%", settings.tasks_at_once) : std::string();
  std::string text =
      concat("#!/bin/bash\n# The sweep ", name, ": ", counted(runs.size(), "run"), " in ",
             counted(tasks, "task"),
             ", listed in points.tsv beside this script.\n# `pipewright sweep FILE --slurm` has "
             "made it; `pipewright sweep FILE --resume` collects.\n#SBATCH --job-name=",
             sbatch_quoted(name), "\n#SBATCH --array=1-", tasks, throttle,
             "\n#SBATCH --ntasks=", resources.tasks,
             "\n#SBATCH --cpus-per-task=", resources.cores_per_task, gpu_line(resources, settings),
             "\n#SBATCH --output=", sbatch_quoted(pattern_of(folder) + "/task-%a.log"),
             "\n#SBATCH --open-mode=append\n");
  for (const std::string& option : settings.options) text += concat("#SBATCH ", option, "\n");
  return text;
}

int number_in(const std::string& field, const std::string& place) {
  if (const auto value = parsed<int>(field)) return *value;
  throw Error(ErrorKind::Data, concat("'", field, "' is not a whole number"), place);
}

}  // namespace

std::vector<ArrayPoint> array_points(const std::vector<PlannedRun>& runs, int points_per_task) {
  PIPEWRIGHT_CHECK(points_per_task >= 1);
  std::vector<ArrayPoint> points;
  for (const PlannedRun& run : runs)
    points.push_back({.task = static_cast<int>(points.size()) / points_per_task + 1,
                      .folder = run.folder.filename().string(),
                      .title = one_line(run.title)});
  return points;
}

std::string array_script(const std::vector<PlannedRun>& runs, const fs::path& folder,
                         const SlurmSettings& settings) {
  PIPEWRIGHT_CHECK(!runs.empty() && folder.is_absolute());
  return concat(header(runs, folder, settings),
                "\npipewright=", shell_quoted(settings.program.string()),
                "\nsweep=", shell_quoted(folder.parent_path().parent_path().string()),
                "\npoints=", shell_quoted((folder / "points.tsv").string()), "\n", kBody);
}

std::string points_text(const std::vector<ArrayPoint>& points) {
  std::string text;
  for (const ArrayPoint& point : points)
    text += concat(point.task, "\t", point.folder, "\t", point.title, "\n");
  return text;
}

std::vector<ArrayPoint> read_points(const fs::path& file) {
  std::vector<ArrayPoint> points;
  std::size_t number = 0;
  for (const std::string& line : split(read_file(file), '\n')) {
    const std::string where = concat(file.string(), ":", ++number);
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() != 3)
      throw Error(
          ErrorKind::Data,
          concat("has ", counted(fields.size(), "field"), "; expected 3: task, folder and title"),
          where);
    points.push_back({number_in(fields[0], where), fields[1], fields[2]});
  }
  return points;
}

}  // namespace pipewright
