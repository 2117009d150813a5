// SPDX-License-Identifier: Apache-2.0
#include "core/exports/long_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/system/file.h"
#include "core/system/machine_limits.h"
#include "core/system/plain_file.h"
#include "core/system/temporary_file.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

constexpr std::size_t kTogether = 1 << 16;  // bytes written at once
/// Columns of our own, which no setting may have.
const std::set<std::string> kOwnColumns{"run",  "label",  "state", "epoch",
                                        "step", "metric", "value"};

/// The options of the resolved experiment as texts, by dotted key, without those that change
/// nothing.
std::map<std::string, std::string> options_of(const RunRecord& record) {
  std::map<std::string, std::string> options = option_texts(record.config.whole());
  std::erase_if(options, [](const auto& option) {
    return option.first == "name" || option.first.starts_with("output.");
  });
  return options;
}

/// The dotted keys in which the resolved experiments differ.
std::set<std::string> differing_options(const std::vector<ExportedRun>& runs) {
  std::optional<std::map<std::string, std::string>> first;
  std::set<std::string> keys;
  for (const ExportedRun& run : runs) {
    if (!run.record.config.known()) continue;
    const std::map<std::string, std::string> options = options_of(run.record);
    if (!first) first = options;
    for (const auto& [key, text] : options)
      if (const auto same = first->find(key); same == first->end() || same->second != text)
        keys.insert(key);
    for (const auto& [key, text] : *first)
      if (!options.contains(key)) keys.insert(key);
  }
  return keys;
}

/// Text that is collected and then written to a file.
class Written {
 public:
  explicit Written(const std::filesystem::path& path) : path_(path), file_(path) {}

  void add(std::string_view text) {
    waiting_ += text;
    if (waiting_.size() >= kTogether) write();
  }

  void finish() {
    write();
    if (::fsync(file_.descriptor()) != 0) refuse_file(file_.name(), "cannot sync", errno);
    file_.rename(path_);
    sync_folder(folder_of(path_));
  }

 private:
  void write() {
    write_all(file_.descriptor(), waiting_, file_.name());
    waiting_.clear();
  }

  const std::filesystem::path path_;
  TemporaryFile file_;
  std::string waiting_;
};

std::string csv_header(const std::vector<std::string>& keys) {
  std::string header = "run,label,state";
  for (const std::string& key : keys) header += concat(",", csv_text(key));
  return header + ",epoch,step,metric,value\n";
}

/// The fields with which all rows of a run begin.
std::string csv_beginning(const ExportedRun& run, const std::vector<std::string>& keys) {
  std::string text =
      concat(csv_text(run.name), ",", csv_text(run.record.label), ",", csv_text(run.record.state));
  for (const std::string& key : keys) {
    const std::optional<Value> value = run.record.setting(key);
    text += concat(",", value ? csv_text(value_text(*value)) : "");
  }
  return text;
}

std::string csv_end(const MetricRow& row) {
  return concat(",", row.epoch, ",", row.minibatch ? std::to_string(*row.minibatch) : "", ",",
                csv_text(row.metric), ",", row.value, "\n");
}

/// The JSON object of such a row without its last brace.
std::string json_beginning(const ExportedRun& run, const std::vector<std::string>& keys) {
  Value object = mapping_of({{"run", Value::of(run.name)},
                             {"label", Value::of(run.record.label)},
                             {"state", Value::of(run.record.state)}});
  for (const std::string& key : keys)
    if (std::optional<Value> value = run.record.setting(key))
      object.at_or_add(key) = *std::move(value);
  std::string text = to_json(object);
  text.pop_back();
  return text;
}

std::string json_end(const MetricRow& row) {
  Value object = Value::mapping();
  object.at_or_add("epoch") = Value::of(row.epoch);
  if (row.minibatch) object.at_or_add("step") = Value::of(*row.minibatch);
  object.at_or_add("metric") = Value::of(row.metric);
  object.at_or_add("value") = Value::of(row.value);
  return concat(",", to_json(object).substr(1), "\n");
}

}  // namespace

std::vector<std::string> differing_keys(const std::vector<ExportedRun>& runs) {
  std::set<std::string> seen = kOwnColumns;
  std::vector<std::string> keys;
  const auto take = [&](const std::string& key) {
    if (seen.insert(key).second) keys.push_back(key);
  };
  for (const ExportedRun& run : runs)
    for (const auto& [key, value] : run.record.varied.fields) take(key);
  const auto is_elsewhere = [&](const ExportedRun& run) {
    return run.source != runs.front().source;
  };
  if (std::ranges::none_of(runs, is_elsewhere)) return keys;
  std::set<std::string> others = differing_options(runs);
  const auto is_within_varied = [&](const std::string& key) {
    return std::ranges::any_of(
        keys, [&](const std::string& varied) { return key.starts_with(varied + "."); });
  };
  std::erase_if(others, is_within_varied);
  for (const std::string& key : others) take(key);
  return keys;
}

std::size_t write_long_rows(const std::filesystem::path& file, const std::vector<ExportedRun>& runs,
                            LongFormat format) {
  require_plain_file(file);
  const bool csv = format == LongFormat::Csv;
  const std::vector<std::string> keys = differing_keys(runs);
  std::size_t rows = 0;
  Written written(file);
  if (csv) written.add(csv_header(keys));
  for (const ExportedRun& run : runs) {
    const std::string beginning = csv ? csv_beginning(run, keys) : json_beginning(run, keys);
    read_metric_rows(run.record, [&](const MetricRow& row) {
      written.add(beginning);
      written.add(csv ? csv_end(row) : json_end(row));
      ++rows;
    });
  }
  written.finish();
  return rows;
}

}  // namespace pipewright
