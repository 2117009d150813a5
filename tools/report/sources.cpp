// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/base/wording.h"
#include "core/experiment/experiment.h"
#include "core/experiment/plugins.h"
#include "core/experiment/reading.h"
#include "core/exports/differing_options.h"
#include "core/records/result_rows.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/drawing_title.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr int kScheduleMinibatches = 12;  // as many as reach the steady state of eight stages

/// What decides a schedule. Runs that share it share the drawing.
std::string schedule_key(const Value& document) {
  std::string key;
  for (const char* const path :
       {"scheme", "pipeline.stages", "pipeline.replicas", "pipeline.microbatches",
        "pipeline.slices", "pipeline.placement", "pipeline.recompute", "pipeline.offload",
        "pipeline.fetch_ahead", "pipeline.balance", "model"})
    if (const Value* const value = document.find_path(path)) key += to_json(*value) + "\n";
  return key;
}

/// "spectrain, version 2, 4 stages", and the same without its stages.
std::string schedule_title(const Experiment& experiment, bool with_stages) {
  std::string text = drawing_title(experiment).substr(experiment.name.size() + 2);
  if (with_stages) text += concat(", ", counted(experiment.pipeline.stages, "stage"));
  if (experiment.pipeline.replicas > 1)
    text += concat(", ", counted(experiment.pipeline.replicas, "replica"));
  if (experiment.pipeline.microbatches > 1)
    text += concat(", ", counted(experiment.pipeline.microbatches, "micro-batch"));
  if (experiment.pipeline.slices > 1)
    text += concat(", ", counted(experiment.pipeline.slices, "slice"));
  return text;
}

ReportSchedule schedule_of(const RunRecord& run) {
  ReportSchedule schedule{.title = run.label, .series = run.label};
  try {
    const Experiment experiment = read_experiment(run.config.whole());
    schedule.title = schedule_title(experiment, true);
    schedule.series = schedule_title(experiment, false);
    schedule.proved = prove(experiment.schedule(kScheduleMinibatches));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    schedule.why_not = error.what();
  }
  std::error_code none;
  if (const fs::path file = run.folder / "experiment.yaml"; fs::exists(file, none))
    schedule.command = concat("pipewright schedule ", shell_quoted(file.string()), plugin_words());
  return schedule;
}

/// Adds what the run has measured, if it has left a trace that can be read.
void add_trace(ReportSchedule& schedule, const RunRecord& run) {
  const fs::path file = run.folder / "trace.json";
  std::error_code none;
  if (schedule.trace || !fs::exists(file, none)) return;
  try {
    MeasuredTrace trace = read_trace(file);
    const int minibatches = trace.proved.schedule.shape.minibatches;
    schedule.traced_schedule = prove(read_experiment(run.config.whole()).schedule(minibatches));
    schedule.trace = std::move(trace);
    schedule.traced_run = run.folder.filename().string();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
  }
}

/// The folders in this one that hold runs but are no runs themselves: "runs/a (3 runs)".
std::string sweeps_in(const fs::path& folder) {
  std::error_code fault;
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    std::error_code ignored;
    if (!at->is_directory(ignored) || at->is_symlink(ignored) || is_run_folder(*at)) continue;
    if (const std::size_t runs = run_folders_of(at->path(), ignored).size(); runs > 0)
      found.push_back(concat(at->path().string(), " (", counted(runs, "run"), ")"));
  }
  std::ranges::sort(found);
  return join(found, ", ");
}

/// The runs in a folder that are not among its given runs, which are those of a sweep.
std::string others_in(const fs::path& folder, const std::vector<RunRecord>& runs) {
  std::set<fs::path> known;
  for (const RunRecord& run : runs) known.insert(run.folder);
  std::error_code fault;
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault))
    if (is_run_folder(*at) && !known.contains(at->path())) found.push_back(at->path().string());
  std::ranges::sort(found);
  return join(found, ", ");
}

}  // namespace

std::vector<RunRecord> runs_of_folder(const fs::path& folder) {
  std::error_code fault;
  std::vector<RunRecord> runs;
  for (const fs::path& inner : run_folders_of(folder, fault)) runs.push_back(read_run(inner));
  if (fault)
    throw Error(ErrorKind::Data, concat("cannot be read: ", fault.message()), folder.string());
  const std::string sweeps = sweeps_in(folder);
  if (runs.empty())
    throw Error(
        ErrorKind::Data,
        concat("holds no runs",
               sweeps.empty() ? "; expected the folder of a run or of a sweep, such as runs/<name>"
                              : concat(" itself; expected one of its folders that do: ", sweeps)),
        folder.string());
  if (!sweeps.empty() && runs.front().folder != folder)
    print_error("note: runs of sweeps in folders of their own are left out: %s\n", sweeps.c_str());
  if (runs.front().folder != folder && fs::exists(folder / "run.json", fault))
    print_error("note: the run %s itself is left out; it lies beside %s of a sweep\n",
                folder.c_str(), counted(runs.size(), "run").c_str());
  if (const std::string others = others_in(folder, runs);
      !others.empty() && runs.front().folder != folder)
    print_error("note: runs that are not known to be of the sweep are left out: %s\n",
                others.c_str());
  sort_as_in_file(runs);
  add_differing_options(runs);
  return runs;
}

Value document_of(const std::vector<RunRecord>& runs, const fs::path& folder) {
  Value document = Value::mapping();
  document.at_or_add("name") = Value::of(fs::weakly_canonical(folder).filename().string());
  for (const RunRecord& run : runs)
    if (run.config.known())
      if (const auto loss = run.config.find_path("loss")) {
        document.at_or_add("loss") = *loss;
        break;
      }
  return document;
}

bool have_own_labels(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::string> labels;  // by what varies besides label and seed
  for (const RunRecord& run : runs) {
    std::string settings;
    for (const auto& [key, value] : run.varied.fields)
      if (key != "label" && key != "train.seed") settings += concat(key, " ", to_json(value), "\n");
    if (labels.try_emplace(settings, run.label).first->second != run.label) return false;
  }
  return true;
}

std::vector<std::string> versions_of_rows(const fs::path& file) {
  if (file.empty()) return {};
  std::map<std::string, std::size_t> others;
  for (const ResultRow& row : read_result_rows(file))
    if (row.version != PIPEWRIGHT_VERSION) ++others[row.version.empty() ? "unknown" : row.version];
  std::vector<std::string> lines;
  for (const auto& [version, count] : others)
    lines.push_back(concat(counted(count, "row"), " of ", file.filename().string(),
                           count == 1 ? " was" : " were", " made by version ", version,
                           ", and this is ", std::string_view(PIPEWRIGHT_VERSION), "."));
  return lines;
}

std::string leading_comment(const fs::path& file) {
  std::string comment;
  for (const std::string& line : split(read_file(file), '\n')) {
    if (!line.starts_with('#')) break;
    std::string_view text = std::string_view(line).substr(1);
    if (text.starts_with(' ')) text.remove_prefix(1);
    const bool for_programs =
        text.starts_with("SPDX-") || text.starts_with("yaml-language-server:");
    if (!for_programs) comment += concat(text, "\n");
  }
  return comment;
}

std::vector<ReportSchedule> schedules_of(const std::vector<RunRecord>& runs) {
  std::vector<ReportSchedule> schedules;
  std::map<std::string, std::size_t> known;  // by what decides them
  std::map<const Value*, std::size_t> of_document;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].config.known()) continue;
    const Value* const document = &runs[i].config.of_any_seed();
    const auto [same, first] = of_document.try_emplace(document, 0);
    if (first) {
      const auto [found, added] = known.try_emplace(schedule_key(*document), schedules.size());
      if (added) schedules.push_back(schedule_of(runs[i]));
      same->second = found->second;
    }
    ReportSchedule& schedule = schedules[same->second];
    schedule.runs.push_back(i);
    add_trace(schedule, runs[i]);
  }
  return schedules;
}

}  // namespace pipewright
