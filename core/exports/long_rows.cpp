// SPDX-License-Identifier: Apache-2.0
#include "core/exports/long_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/exports/differing_options.h"
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
  std::vector<const RunRecord*> records;
  for (const ExportedRun& run : runs) records.push_back(&run.record);
  for (const std::string& key : differing_options(records)) take(key);
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
