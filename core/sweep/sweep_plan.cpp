// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/records/run_claim.h"
#include "core/sweep/point_reader.h"
#include "core/sweep/run_problems.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// The experiment file for a run's process. It is hidden, so that users see only experiment.yaml.
constexpr const char* kGivenFile = ".experiment.yaml";

Value varied_of(const SweepPoint& point) {
  Value varied = Value::mapping();
  for (const auto& [key, value] : point.varied) varied.at_or_add(key) = value;
  return varied;
}

std::string short_text(const std::string& key, const Value& value) {
  if (value.is(Value::Kind::Text)) return value.text;
  return concat(short_key(key), " ", plain_text(value));
}

/// For each label, the varied keys (without the label) whose values differ between its points.
using KeysOfLabels = std::map<std::string, std::set<std::string>>;

KeysOfLabels keys_that_differ(const std::vector<SweepPoint>& points) {
  KeysOfLabels keys;
  std::map<std::string, std::map<std::string, const Value*>>
      firsts;  // values of each label's first point
  const auto values_of = [](const SweepPoint& point) {
    std::map<std::string, const Value*> values;
    for (const auto& [key, value] : point.varied)
      if (key != "label") values.emplace(key, &value);
    return values;
  };
  for (const SweepPoint& point : points) {
    const std::map<std::string, const Value*> values = values_of(point);
    const auto [first, added] = firsts.emplace(point.label, values);
    if (added) continue;
    for (const auto& [key, value] : values) {
      const auto known = first->second.find(key);
      if (known == first->second.end() || !(*known->second == *value))
        keys[point.label].insert(key);
    }
    for (const auto& [key, value] : first->second)
      if (!values.contains(key)) keys[point.label].insert(key);
  }
  return keys;
}

PlannedRun found_run(const SweepPoint& point, std::size_t index, fs::path folder) {
  return {{},
          static_cast<int>(index) + 1,
          point.label,
          "",
          varied_of(point),
          std::move(folder),
          file_of(point.document)};
}

/// The configuration of a run: that in its folder if it differs from the planned one.
RunConfig recorded_config(const PlannedRun& run, const RunRecord& record) {
  const bool as_planned = record.digest == run.digest && !run.settled_late;
  const fs::path file = run.folder / "experiment.yaml";
  if (as_planned || record.state == "missing" || !fs::exists(file)) return run.resolved;
  try {
    return load_yaml(file);
  } catch (const Error&) {
    return run.resolved;
  }
}

RunRecord record_of(const PlannedRun& run) {
  RunRecord record = read_numbers(run.folder);
  record.point = run.point;
  record.label = run.label;
  record.varied = run.varied;
  record.config = recorded_config(run, record);
  if (record.state == "missing") record.digest = run.digest;
  return record;
}

/// Throws for a sweep over the hardware of simulations, whose runs would train the same.
void refuse_hardware(const std::vector<SweepPoint>& points) {
  for (const SweepPoint& point : points)
    for (const auto& [key, value] : point.varied)
      if (key.starts_with("hardware."))
        throw Error(ErrorKind::Experiment,
                    concat("the sweep varies '", key,
                           "', which changes simulations and no training: `pipewright simulate "
                           "FILE --sweep` simulates its points"),
                    value.key_place().text());
}

std::string values_title(const SweepPoint& point) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : point.varied)
    if (key != "label") texts.push_back(short_text(key, value));
  return join(texts, " ");
}

}  // namespace

std::string file_of(const Value& document) {
  std::error_code none;
  return fs::weakly_canonical(document.place.file, none).string();
}

std::vector<std::string> run_titles(const std::vector<SweepPoint>& points) {
  KeysOfLabels differing = keys_that_differ(points);
  std::vector<std::string> titles;
  for (const SweepPoint& point : points) {
    if (const std::string values = values_title(point); !point.labelled && !values.empty()) {
      titles.push_back(values);
      continue;
    }
    std::string title = point.label;
    const std::set<std::string>& keys = differing[point.label];
    for (const auto& [key, value] : point.varied)
      if (keys.contains(key)) title += concat(" ", short_text(key, value));
    titles.push_back(title);
  }
  return titles;
}

std::vector<PlannedRun> plan_sweep(const Value& document, const fs::path& out) {
  const std::vector<SweepPoint> points = expand_sweep_alone(document);
  refuse_hardware(points);
  const std::vector<std::string> titles = run_titles(points);
  std::vector<PlannedRun> runs;
  RunProblems problems;
  PointReader reader;
  for (std::size_t i = 0; i < points.size(); ++i) {
    try {
      PlannedRun& run = runs.emplace_back(found_run(points[i], i, out / points[i].folder()));
      static_cast<PointExperiment&>(run) = reader.read(points[i].document);
      run.title = titles[i];
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
  write_point(run.folder, run.entry());
  const fs::path given = run.folder / kGivenFile;
  write_file(given, to_yaml(run.resolved.whole()));
  return given;
}

std::vector<RunRecord> records_of(const std::vector<PlannedRun>& runs) {
  std::vector<RunRecord> records;
  records.reserve(runs.size());
  for (const PlannedRun& run : runs) records.push_back(record_of(run));
  return records;
}

void write_point(const fs::path& folder, const SweepPoint& point, int number) {
  write_point(folder, {number, point.label, varied_of(point), file_of(point.document), {}});
}

std::vector<RunRecord> sweep_records(const Value& document, const fs::path& out) {
  const bool alone = document.find("sweep") == nullptr;
  std::vector<RunRecord> records;
  PointReader reader;
  for (const SweepPoint& point : expand_sweep_alone(document)) {
    const fs::path folder = out / point.folder();
    const bool itself = alone && !fs::exists(folder) && fs::exists(out / "run.json");
    PlannedRun run = found_run(point, records.size(), itself ? out : folder);
    std::optional<Error> problem;
    try {
      static_cast<PointExperiment&>(run) = reader.read(point.document);
    } catch (const Error& error) {
      problem = error;
    }
    records.push_back(record_of(run));
    if (problem && !records.back().config.known()) throw Error(*problem);
  }
  return records;
}

}  // namespace pipewright
