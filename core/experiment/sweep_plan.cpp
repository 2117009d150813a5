#include "core/experiment/sweep_plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/config/component_name.h"
#include "core/experiment/experiment.h"
#include "core/experiment/run_claim.h"
#include "core/experiment/run_problems.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// Hidden, so that a run's own experiment.yaml is the only one a person sees.
constexpr const char* kGivenFile = ".experiment.yaml";

Value varied_of(const SweepPoint& point) {
  Value varied = Value::mapping();
  for (const auto& [key, value] : point.varied) varied.at_or_add(key) = value;
  return varied;
}

std::string short_text(const std::string& key, const Value& value) {
  if (value.is(Value::Kind::Text)) return value.text;
  return concat(split(key, '.').back(), " ", to_json(value));
}

const Value* varied_value(const SweepPoint& point, const std::string& key) {
  const auto found =
      std::ranges::find(point.varied, key, [](const auto& pair) { return pair.first; });
  return found == point.varied.end() ? nullptr : &found->second;
}

bool differ(const Value* a, const Value* b) {
  return (a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b));
}

int cores_of(const Experiment& experiment) {
  const PipelineOptions& pipeline = experiment.pipeline;
  const bool alone = pipeline.execution == Execution::Serial;
  return pipeline.threads * (alone ? 1 : experiment.shape(1).workers());
}

int processes_of(const Experiment& experiment) {
  return experiment.pipeline.execution == Execution::Mpi ? experiment.shape(1).workers() : 0;
}

/// Without a label of its own a run is called by its values, which `label` then only joins.
bool is_joined_values(const SweepPoint& point) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : point.varied)
    if (key != "label") texts.push_back(value.is(Value::Kind::Text) ? value.text : to_json(value));
  return !texts.empty() && component_name_of(join(texts, "-")) == point.label;
}

std::string values_title(const SweepPoint& point) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : point.varied)
    if (key != "label") texts.push_back(short_text(key, value));
  return join(texts, " ");
}

}  // namespace

std::vector<std::string> run_titles(const std::vector<SweepPoint>& points) {
  std::vector<std::string> titles;
  for (const SweepPoint& point : points) {
    if (is_joined_values(point)) {
      titles.push_back(values_title(point));
      continue;
    }
    std::string title = point.label;
    for (const auto& [key, value] : point.varied) {
      const auto other = [&](const SweepPoint& candidate) {
        return candidate.label == point.label && differ(&value, varied_value(candidate, key));
      };
      if (key != "label" && std::ranges::any_of(points, other))
        title += concat(" ", short_text(key, value));
    }
    titles.push_back(title);
  }
  return titles;
}

std::vector<PlannedRun> plan_sweep(const Value& document, const fs::path& out) {
  const std::vector<SweepPoint> points = expand_sweep(document);
  const std::vector<std::string> titles = run_titles(points);
  std::vector<PlannedRun> runs;
  RunProblems problems;
  for (std::size_t i = 0; i < points.size(); ++i) {
    try {
      const Experiment experiment = read_experiment(points[i].document);
      runs.push_back({.label = points[i].label,
                      .title = titles[i],
                      .varied = varied_of(points[i]),
                      .folder = out / points[i].folder(),
                      .resolved = experiment.resolved,
                      .digest = experiment.digest,
                      .cores = cores_of(experiment),
                      .processes = processes_of(experiment)});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Bug) throw;
      problems.add(error, titles[i]);
    }
  }
  problems.throw_if_any(points.size());
  return runs;
}

fs::path write_run_inputs(const PlannedRun& run, bool overwrite) {
  const FolderLock lock = claim(RunFolder(run.folder), {.overwrite = overwrite});
  write_point(run.folder, run.label, run.varied);
  const fs::path given = run.folder / kGivenFile;
  write_file(given, to_yaml(run.resolved));
  return given;
}

void write_point(const fs::path& folder, const SweepPoint& point) {
  write_point(folder, point.label, varied_of(point));
}

std::vector<RunRecord> sweep_records(const Value& document, const fs::path& out) {
  const bool alone = document.find("sweep") == nullptr;
  std::vector<RunRecord> records;
  for (const SweepPoint& point : expand_sweep(document)) {
    const fs::path folder = out / point.folder();
    const bool itself = alone && !fs::exists(folder) && fs::exists(out / "run.json");
    RunRecord& record = records.emplace_back(read_run(itself ? out : folder));
    record.label = point.label;
    record.varied = varied_of(point);
    if (record.config.is(Value::Kind::Null))
      record.config = read_experiment(point.document).resolved;
  }
  return records;
}

}  // namespace pipewright
