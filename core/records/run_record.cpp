// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/text.h"
#include "core/config/json.h"
#include "core/records/run_folder.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFile = "run.json";
constexpr const char* kPointFile = "point.json";

int integer_of(const Value& mapping, std::string_view key) {
  const Value* value = mapping.find(key);
  return value != nullptr && value->is(Value::Kind::Integer) ? static_cast<int>(value->integer) : 0;
}

/// Adds columns with the same value in every epoch.
void add_columns(RunRecord& run, std::initializer_list<std::pair<const char*, double>> metrics) {
  for (const auto& [name, value] : metrics) {
    run.columns.emplace_back(name);
    for (std::vector<double>& epoch : run.epochs) epoch.push_back(value);
  }
}

/// Adds the columns about traffic between workers and sums over replicas.
void add_traffic(RunRecord& run) {
  const fs::path file = RunFolder(run.folder).traffic();
  if (!is_there(file)) return;
  const NumberTable table = read_number_table(file, "kind");
  const auto column = [&](const char* name) {
    const auto found = std::ranges::find(table.columns, name);
    if (found == table.columns.end())
      throw Error(ErrorKind::Data, concat("has no column '", name, "'"), file.string());
    return static_cast<std::size_t>(found - table.columns.begin());
  };
  const std::size_t stage = column("from"), next = column("to"), from = column("from_worker"),
                    to = column("to_worker"), values = column("value_bytes"),
                    sent = column("sent_bytes"), encode = column("encode_seconds"),
                    decode = column("decode_seconds"), minibatches = column("minibatches"),
                    seconds = column("train_seconds");
  double value_bytes = 0, sent_bytes = 0, codec_seconds = 0, count = 0, train_seconds = 0;
  double gradient_bytes = 0, reduced_bytes = 0;
  for (const std::vector<double>& edge : table.rows) {
    count = edge[minibatches];
    train_seconds = edge[seconds];
    if (edge[stage] == edge[next]) {
      gradient_bytes += edge[values];
      reduced_bytes += edge[sent];
    } else if (edge[from] != edge[to]) {
      value_bytes += edge[values];
      sent_bytes += edge[sent];
      codec_seconds += edge[encode] + edge[decode];
    }
  }
  if (value_bytes > 0)
    add_columns(run, {{kTrafficColumns[0], sent_bytes / value_bytes},
                      {kTrafficColumns[1], sent_bytes / count / kMiB},
                      {kTrafficColumns[2], sent_bytes / train_seconds / kMiB},
                      {kTrafficColumns[3], codec_seconds / train_seconds}});
  if (gradient_bytes > 0)
    add_columns(run, {{kTrafficColumns[4], reduced_bytes / gradient_bytes},
                      {kTrafficColumns[5], reduced_bytes / count / kMiB}});
}

/// Reads epochs.csv, evaluations.csv and traffic.csv.
void read_metrics(RunRecord& run) {
  if (const fs::path file = RunFolder(run.folder).evaluations(); is_there(file)) {
    const NumberTable table = read_number_table(file);
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      for (const std::vector<double>& row : table.rows)
        run.evaluations[table.columns[c]].push_back(row[c]);
  }
  if (!is_there(run.folder / "epochs.csv")) return;
  NumberTable table = read_number_table(run.folder / "epochs.csv");
  run.columns = std::move(table.columns);
  run.epochs = std::move(table.rows);
  add_traffic(run);
}

void mark_failed(RunOutcome& run, const std::string& error) {
  run.state = "failed";
  run.error = error;
}

void mark_unreadable(RunOutcome& run, const Error& error) {
  mark_failed(run, error.what());
  run.fault = error.what();
}

/// The error that a sweep has recorded for a run which could not; "" for none.
std::string error_of_sweep(const fs::path& folder) {
  return is_there(folder / kPointFile) ? text_at(load_json(folder / kPointFile), "error")
                                       : std::string();
}

RunOutcome recorded_outcome(const Value& run) {
  const std::string state = text_at(run, "state");
  const Value* const contents = run.find("contents");
  return {.state = state.empty() ? "failed" : state,
          .name = text_at(run, "name"),
          .digest = text_at(run, "digest"),
          .error = text_at(run, "error"),
          .started = text_at(run, "started"),
          .finished = text_at(run, "finished"),
          .exit_code = integer_of(run, "exit_code"),
          .contents = contents != nullptr ? *contents : Value()};
}

/// Reads label and varied values from point.json.
void read_point(RunRecord& run) {
  run.label = run.folder.filename().string();
  run.varied = Value::mapping();
  if (!is_there(run.folder / kPointFile)) return;
  const Value point = load_json(run.folder / kPointFile);
  if (const std::string label = text_at(point, "label"); !label.empty()) run.label = label;
  if (const Value* varied = point.find("varied")) run.varied = *varied;
  run.point = integer_of(point, "point");
}

constexpr std::string_view kSection = "train";
constexpr std::string_view kOption = "seed";

Value changed(Value section, std::int64_t seed) {
  *section.find(kOption) = Value::of(seed);
  return section;
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() != fs::file_type::not_found;
}

std::optional<std::size_t> RunRecord::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::vector<double> RunRecord::values_of(std::string_view name) const {
  std::vector<double> values;
  if (const auto index = column(name))
    for (const std::vector<double>& row : epochs) values.push_back(row.at(*index));
  return values;
}

std::optional<Value> RunRecord::setting(const std::string& key) const {
  if (config.known())
    if (std::optional<Value> value = config.find_path(key)) return value;
  const Value* value = varied.find(key);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

bool RunOutcome::diverged() const {
  return state == "failed" && exit_code == static_cast<int>(ErrorKind::NotFinite);
}

RunOutcome read_outcome(const fs::path& folder) {
  RunOutcome outcome{.state = "missing"};
  try {
    if (is_there(folder / kRunFile)) outcome = recorded_outcome(load_json(folder / kRunFile));
    // A killed run leaves the state "running"; its sweep may have recorded its end.
    const bool running = outcome.state == "running";
    if (!running && outcome.state != "missing") return outcome;
    if (const std::string error = error_of_sweep(folder); !error.empty())
      mark_failed(outcome, error);
    else if (running && is_free(folder) &&
             text_at(load_json(folder / kRunFile), "state") == "running")
      outcome.state = "interrupted";  // read again: it may have ended in the meantime
  } catch (const Error& error) {
    mark_unreadable(outcome, error);
  }
  return outcome;
}

RunRecord read_numbers(const fs::path& folder) {
  RunRecord run;
  run.folder = folder;
  static_cast<RunOutcome&>(run) = read_outcome(folder);
  try {
    read_metrics(run);
  } catch (const Error& error) {
    mark_unreadable(run, error);
  }
  return run;
}

RunRecord read_run(const fs::path& folder) {
  RunRecord run = read_numbers(folder);
  try {
    read_point(run);
    if (is_there(folder / "experiment.yaml")) run.config = load_yaml(folder / "experiment.yaml");
  } catch (const Error& error) {
    mark_unreadable(run, error);
  }
  return run;
}

bool is_run_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored) && !entry.is_symlink(ignored) &&
         (is_there(entry.path() / kRunFile) || is_there(entry.path() / kPointFile));
}

std::vector<fs::path> run_folders_of(const fs::path& folder, std::error_code& fault) {
  std::vector<fs::path> inner, of_sweep;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    if (!is_run_folder(*at)) continue;
    inner.push_back(at->path());
    if (is_there(at->path() / kPointFile)) of_sweep.push_back(at->path());
  }
  if (!of_sweep.empty()) return of_sweep;
  if (is_run_folder(fs::directory_entry(folder))) return {folder};
  return inner;
}

void sort_as_in_file(std::vector<RunRecord>& runs) {
  std::ranges::sort(runs, {}, [](const RunRecord& run) {
    return std::pair(run.point > 0 ? run.point : std::numeric_limits<int>::max(), run.folder);
  });
}

void write_point(const fs::path& folder, const PointEntry& entry) {
  Value point = mapping_of({{"point", Value::of(entry.number)},
                            {"label", Value::of(entry.label)},
                            {"varied", entry.varied},
                            {"file", Value::of(entry.file)}});
  if (!entry.error.empty()) point.at_or_add("error") = Value::of(entry.error);
  write_file(folder / kPointFile, to_json(point) + "\n");
}

std::string file_of_point(const fs::path& folder) {
  try {
    return is_there(folder / kPointFile) ? text_at(load_json(folder / kPointFile), "file") : "";
  } catch (const Error&) {  // it is damaged
    return {};
  }
}

double value_at(const std::string& epoch, const std::string& metric,
                std::span<const double> values) {
  const Better better = better_values(metric);
  const bool takes_last = epoch == "last" || better == Better::NotJudged;
  double chosen = kNoNumber;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    const bool is_better = better == Better::Smaller ? value < chosen : value > chosen;
    if (takes_last || std::isnan(chosen) || is_better) chosen = value;
  }
  return chosen;
}

std::optional<double> metric_of(const RunRecord& run, const std::string& metric,
                                const std::string& epoch) {
  for (const auto& [name, value] : run.modelled)
    if (name == metric) return value;
  for (const auto& [name, value] : run.times_to)
    if (name == metric) return value;
  if (!run.done()) return std::nullopt;
  const double value = value_at(epoch, metric, run.values_of(metric));
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

bool is_modelled(const std::string& metric) {
  return metric.starts_with("modelled_");
}

bool reaches(double value, double floor, const std::string& metric) {
  return better_values(metric) == Better::Smaller ? value <= floor : value >= floor;
}

Better better_values(const std::string& metric) {
  constexpr std::array kNotJudged{"lr", "epoch", "modelled_parameters", "modelled_link_mib_per_s"};
  if (metric.starts_with("probe.") || std::ranges::count(kNotJudged, metric) > 0)
    return Better::NotJudged;
  constexpr std::array kSmaller{"loss",      "mae",   "perplexity", "error", "seconds",
                                "hours",     "gib",   "bubble",     "ratio", "mib",
                                "mib_per_s", "share", "_to"};
  return std::ranges::any_of(kSmaller, [&](const char* end) { return metric.ends_with(end); })
             ? Better::Smaller
             : Better::Larger;
}

std::optional<Value> RunConfig::find_path(std::string_view dotted) const {
  const Value* found = shared_->find_path(dotted);
  if (found == nullptr) return std::nullopt;
  if (seed_ && dotted == "train.seed") return Value::of(*seed_);
  if (seed_ && dotted == kSection) return changed(*found, *seed_);
  return *found;
}

Value RunConfig::whole() const {
  Value resolved = *shared_;
  if (!seed_) return resolved;
  Value& section = *resolved.find(kSection);
  section = changed(std::move(section), *seed_);
  return resolved;
}

RunConfig RunConfig::with_seed(std::int64_t seed) const {
  RunConfig other = *this;
  other.seed_ = seed;
  return other;
}

}  // namespace pipewright
