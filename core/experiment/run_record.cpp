#include "core/experiment/run_record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/file.h"
#include "core/experiment/run_folder.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPointFile = "point.json";
constexpr double kMiB = 1024.0 * 1024.0;

std::string text_of(const Value& mapping, std::string_view key) {
  const Value* value = mapping.find(key);
  return value != nullptr && value->is(Value::Kind::Text) ? value->text : std::string();
}

/// Label, what varies, and how the process ended if only the sweep knows.
void read_point(RunRecord& run) {
  if (!fs::exists(run.folder / kPointFile)) return;
  const Value point = load_yaml(run.folder / kPointFile);
  if (const std::string label = text_of(point, "label"); !label.empty()) run.label = label;
  if (const Value* varied = point.find("varied")) run.varied = *varied;
  run.error = text_of(point, "error");
  if (!run.error.empty()) run.state = "failed";
}

void read_state(RunRecord& run) {
  if (!fs::exists(run.folder / "run.json")) return;
  const Value state = load_yaml(run.folder / "run.json");
  const std::string name = text_of(state, "state");
  run.digest = text_of(state, "digest");
  // A killed run could not take back its "running"; the sweep that saw it die knows better.
  if (name == "running" && run.state == "failed") return;
  run.state = name.empty() ? "failed" : name;
  run.error = text_of(state, "error");
}

/// More columns, the same in every epoch.
void add_columns(RunRecord& run, std::initializer_list<std::pair<const char*, double>> metrics) {
  for (const auto& [name, value] : metrics) {
    run.columns.emplace_back(name);
    for (std::vector<double>& epoch : run.epochs) epoch.push_back(value);
  }
}

/// What crossed between workers, and what replicas summed.
void add_traffic(RunRecord& run) {
  const fs::path file = RunFolder(run.folder).traffic();
  if (!fs::exists(file)) return;
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
    add_columns(run, {{"sent_ratio", sent_bytes / value_bytes},
                      {"sent_mib", sent_bytes / count / kMiB},
                      {"required_mib_per_s", sent_bytes / train_seconds / kMiB},
                      {"codec_share", codec_seconds / train_seconds}});
  if (gradient_bytes > 0)
    add_columns(run, {{"reduced_ratio", reduced_bytes / gradient_bytes},
                      {"reduced_mib", reduced_bytes / count / kMiB}});
}

void read_results(RunRecord& run) {
  if (fs::exists(run.folder / "experiment.yaml"))
    run.config = load_yaml(run.folder / "experiment.yaml");
  if (!fs::exists(run.folder / "epochs.csv")) return;
  NumberTable table = read_number_table(run.folder / "epochs.csv");
  run.columns = std::move(table.columns);
  run.epochs = std::move(table.rows);
  add_traffic(run);
}

}  // namespace

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  run.folder = folder;
  run.label = folder.filename().string();
  run.state = "missing";
  run.varied = Value::mapping();
  try {
    read_point(run);
    read_state(run);
    read_results(run);
  } catch (const Error& error) {
    run.state = "failed";
    run.error = error.what();
  }
  return run;
}

std::vector<RunRecord> read_runs(const fs::path& sweep_folder) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(sweep_folder, ignored))
    if (entry.is_directory() &&
        (fs::exists(entry.path() / "run.json") || fs::exists(entry.path() / kPointFile)))
      folders.push_back(entry.path());
  std::ranges::sort(folders);
  std::vector<RunRecord> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run(folder));
  return runs;
}

void write_point(const fs::path& folder, const std::string& label, const Value& varied,
                 const std::string& error) {
  Value point = Value::mapping();
  point.at_or_add("label") = Value::of(label);
  point.at_or_add("varied") = varied;
  if (!error.empty()) point.at_or_add("error") = Value::of(error);
  write_file(folder / kPointFile, to_json(point) + "\n");
}

std::optional<double> metric_of(const RunRecord& run, const std::string& metric,
                                const std::string& epoch) {
  for (const auto& [name, value] : run.modelled)
    if (name == metric) return value;
  const auto column = std::ranges::find(run.columns, metric);
  if (!run.done() || column == run.columns.end()) return std::nullopt;
  const auto index = static_cast<std::size_t>(column - run.columns.begin());
  std::optional<double> chosen;
  for (const std::vector<double>& row : run.epochs) {
    const double value = row.at(index);
    if (std::isnan(value)) continue;
    const bool better = !chosen || (smaller_is_better(metric) ? value < *chosen : value > *chosen);
    if (epoch == "last" || better) chosen = value;
  }
  return chosen;
}

bool is_modelled(const std::string& metric) {
  return metric.starts_with("modelled_");
}

bool smaller_is_better(const std::string& metric) {
  constexpr std::array kSmaller{"loss",   "perplexity", "error", "seconds",   "hours", "gib",
                                "bubble", "ratio",      "mib",   "mib_per_s", "share"};
  return std::ranges::any_of(kSmaller, [&](const char* end) { return metric.ends_with(end); });
}

}  // namespace pipewright
