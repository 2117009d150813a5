// SPDX-License-Identifier: Apache-2.0
// `pipewright compare`: what two runs, or two experiments, differ in, and where first.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/comparison/run_difference.h"
#include "core/comparison/schedule_difference.h"
#include "core/drawing/render.h"
#include "core/experiment/experiment.h"
#include "core/experiment/identity.h"
#include "core/experiment/reading.h"
#include "core/records/run_folder.h"
#include "core/records/run_record.h"
#include "core/schedule/schedule_size.h"
#include "core/system/terminal.h"
#include "core/training/resume.h"
#include "tools/command.h"
#include "tools/results.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// One of the two things compared.
struct Side {
  std::string name;
  std::optional<fs::path> folder;  ///< of a run; none for an experiment file
  Experiment experiment;
};

/// The run in a folder.
Side side_of_run(const fs::path& folder) {
  std::error_code none;
  const RunFolder run(folder);
  if (!fs::exists(run.experiment(), none))
    throw Error(ErrorKind::Experiment,
                "holds no run: expected a folder with experiment.yaml, or an experiment file",
                folder.string());
  if (fs::exists(folder / "run.json", none)) check_plugins(run);
  Problems faults;
  const OneExperiment one = one_experiment({.file = run.experiment()}, faults);
  return {folder.string(), folder, read_experiment(one.document, faults)};
}

Side side_of(const fs::path& path, const std::string& point) {
  std::error_code none;
  if (fs::is_directory(path, none)) {
    if (!point.empty())
      throw Error(ErrorKind::Experiment,
                  concat("is the folder of a run, which has no point ", point), path.string());
    return side_of_run(path);
  }
  Problems faults;
  const OneExperiment one = one_experiment({.file = path, .point = point}, faults);
  const std::string name =
      one.remark.empty() ? path.string() : concat(path.string(), ", ", one.remark);
  return {name, std::nullopt, read_experiment(one.document, faults)};
}

/// The runs of one or two folders of sweeps that have these settings.
std::pair<Side, Side> sides_where(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& settings) {
  if (settings.size() != 2)
    throw Error(ErrorKind::Experiment, concat("--where is given ", settings.size(),
                                              " times; expected one for each of two runs"));
  return {side_of(run_in(folders.front(), settings[0]), {}),
          side_of(run_in(folders.back(), settings[1]), {})};
}

/// The two things that the arguments name: two paths, or one file with two points of its sweep.
std::pair<Side, Side> sides_of(const CommandLine& line) {
  const std::vector<std::string> paths = line.texts("RUN"), points = line.texts("point");
  const std::vector<std::string> settings = line.texts("where");
  if (!settings.empty()) return sides_where(paths, settings);
  if (points.size() > 2)
    throw Error(ErrorKind::Experiment,
                concat("--point is given ", points.size(), " times; expected one for each of two"));
  if (paths.size() == 1 && points.size() < 2)
    throw Error(ErrorKind::Experiment,
                concat("one of two is missing: give another run or file behind ", paths.front(),
                       ", or --point twice for two points of its sweep"));
  const auto point = [&](std::size_t i) { return i < points.size() ? points[i] : std::string(); };
  return {side_of(paths.front(), point(0)), side_of(paths.back(), point(1))};
}

int shown_minibatches(const CommandLine& line) {
  const int minibatches = line.integer("minibatches");
  if (minibatches < 1)
    throw Error(ErrorKind::Experiment,
                concat("--minibatches is ", minibatches, "; expected at least 1"));
  return minibatches;
}

ProvedSchedule schedule_of(const Experiment& experiment, int minibatches) {
  check_schedule_size(experiment.shape(minibatches), minibatches, kBytesOfProved);
  return prove_for_eyes(experiment.schedule(minibatches));
}

/// What the two differ in, as parts of the last sentence.
struct Answer {
  std::vector<std::string> parts;

  void add(bool differs, const std::string& what, const std::string& equal) {
    parts.push_back(differs ? what : equal);
  }
};

void compare_settings(const Side& a, const Side& b, Answer& answer) {
  const std::vector<std::string> changes =
      all_changes(a.experiment.resolved, b.experiment.resolved);
  if (changes.empty()) print("settings    the same\n");
  for (const std::string& change : changes) print("setting     %s\n", change.c_str());
  answer.add(
      !changes.empty(),
      concat(counted(changes.size(), "setting"), changes.size() == 1 ? " differs" : " differ"),
      "settings are the same");
}

/// Says how far a run has come that has not ended, so that nobody takes a part for the whole.
void tell_unfinished(const char* which, const fs::path& folder, Answer& answer) {
  const std::string state = read_outcome(folder).state;
  if (state == "done") return;
  print("state       %s is %s: what it has measured so far is compared\n", which, state.c_str());
  answer.parts.push_back(concat("the ", std::string_view(which), " is not done but ", state));
}

void compare_results(const Side& a, const Side& b, Answer& answer) {
  if (!a.folder || !b.folder) return;
  tell_unfinished("first", *a.folder, answer);
  tell_unfinished("second", *b.folder, answer);
  if (const auto losses = loss_difference(*a.folder, *b.folder)) {
    print("%s", loss_difference_text(*losses).c_str());
    answer.parts.push_back(losses_in_short(*losses));
  } else {
    print("losses      not compared: not both have steps.csv (output.steps: true writes it)\n");
  }
  const std::vector<TensorDifference> tensors = tensor_differences(*a.folder, *b.folder);
  for (const TensorDifference& each : tensors) print("%s", tensor_difference_text(each).c_str());
  if (tensors.empty())
    print("tensors     not compared: no checkpoint or final weights that both have\n");
  const auto differs = [](const TensorDifference& each) {
    return each.differing > 0 || !each.only_a.empty() || !each.only_b.empty();
  };
  const auto first = std::ranges::find_if(tensors, differs);
  if (first != tensors.end() && first->differing > 0)
    answer.parts.push_back(concat("tensors differ ", first->when, ", first ", first->first));
  else if (!tensors.empty())
    answer.add(first != tensors.end(), "they have other tensors", "tensors are equal");
}

void compare_schedules(const ProvedSchedule& a, const ProvedSchedule& b, Answer& answer) {
  const std::vector<WorkerDifference> workers = schedule_differences(a, b);
  print("\nschedules of %s\n%s", counted(a.schedule.shape.minibatches, "mini-batch").c_str(),
        schedule_difference_text(workers).c_str());
  const auto differs = [](const WorkerDifference& each) { return each.first.has_value(); };
  const auto differing = std::ranges::count_if(workers, differs);
  answer.add(differing > 0,
             concat("schedules differ on ", differing, " of ", counted(workers.size(), "worker")),
             "schedules are equal");
}

int run_compare(const std::vector<std::string>& arguments) {
  CommandLine line(
      kCompare,
      "Says what two runs differ in: their settings; the first mini-batch with another loss; the "
      "first tensor with other bytes, at checkpoints after equal numbers of mini-batches and at "
      "the end; and their schedules, worker by worker: how many actions are the same, how many "
      "read other weights, and the first that differs. Each may also be an experiment file, of "
      "which settings and schedule are compared.");
  line.positional(
      "RUN",
      "the folder of a run, or an experiment file; one file with two --point, or the folder of a "
      "sweep with two --where",
      1, 2);
  line.list("point", "POINT",
            "of a file with a sweep: its number, or the name that `check` prints; the second "
            "--point is that of the second file, or the second of one file");
  line.where(/*several=*/true);
  line.option("minibatches", "N", "how many mini-batches of the schedules to compare", "8");
  line.plugins();
  if (!line.parse(arguments)) return 0;
  const int minibatches = shown_minibatches(line);
  const auto [a, b] = sides_of(line);
  const ProvedSchedule first = schedule_of(a.experiment, minibatches);
  const ProvedSchedule second = schedule_of(b.experiment, minibatches);
  need_libtorch();
  print("first       %s\nsecond      %s\n\n", a.name.c_str(), b.name.c_str());
  Answer answer;
  compare_settings(a, b, answer);
  compare_results(a, b, answer);
  compare_schedules(first, second, answer);
  print("\nIn short: %s.\n", join(answer.parts, "; ").c_str());
  return 0;
}

}  // namespace

const Command kCompare{
    "compare",
    "compare RUN RUN | compare FILE --point P --point Q | compare DIR --where S --where T",
    "what two runs differ in, and where first", run_compare};

}  // namespace pipewright
