// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_folder.h"

#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/records/checkpoint_files.h"
#include "core/records/run_files.h"
#include "core/system/file.h"
#include "core/system/given_files.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEpochsHeader =
    "epoch,train_loss,test_loss,test_accuracy,lr,seconds,samples_per_second";

constexpr std::uint64_t kLargestTable = 1 << 28;  // bytes; a row takes some hundred

std::string field(double value) {
  return std::isnan(value) ? std::string() : number_text(value);
}

/// A number with 17 significant digits, from which every double reads back exactly.
std::string exact(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 17);
  return {text, end.ptr};
}

const char* kind_of(const EdgeTraffic& edge) {
  return edge.reduces() ? "reduce" : edge.from < edge.to ? "forward" : "backward";
}

}  // namespace

std::vector<std::string> epoch_columns() {
  return split(kEpochsHeader, ',');
}

std::string RunFolder::state() const {
  if (!std::filesystem::exists(path_ / "run.json")) return "missing";
  const Value run = load_json(path_ / "run.json");
  const Value* state = run.find("state");
  return state != nullptr ? state->text : "missing";
}

void RunFolder::clear() const {
  remove_files(path_, is_run_file);
  const auto remove_link = [](const fs::path& path) {
    std::error_code none;
    if (fs::is_symlink(fs::symlink_status(path, none))) fs::remove(path, none);
  };
  remove_link(checkpoints());
  for (const fs::path& folder : own_entries(checkpoints(), is_checkpoint_folder))
    remove_link(folder);
  remove_checkpoints(checkpoints());
}

void RunFolder::write_experiment(const Value& resolved) const {
  const std::string text = to_yaml(resolved);
  std::error_code none;
  if (fs::is_regular_file(fs::symlink_status(experiment(), none))) {
    const std::string before = read_file(experiment());
    if (before == text) return;
    if (is_given_file(experiment()) && before != to_yaml(load_yaml(experiment())))
      throw Error(ErrorKind::Experiment,
                  "is the experiment file given, and the run would replace it by the resolved one; "
                  "give another --out",
                  experiment().string());
  }
  write_file(experiment(), text);
}

void RunFolder::write_state(const Value& run) const {
  write_file(path_ / "run.json", to_json(run) + "\n");
}

void RunFolder::write_epochs(const std::vector<EpochRow>& rows,
                             const std::vector<std::string>& metrics, Syncs syncs) const {
  std::string text = kEpochsHeader;
  for (const std::string& name : metrics) text += ",test_" + name;
  text += "\n";
  for (const EpochRow& row : rows) {
    text += concat(row.epoch, ",", field(row.train_loss), ",", field(row.test_loss), ",",
                   field(row.test_accuracy), ",", field(row.lr), ",", field(row.seconds), ",",
                   field(row.samples_per_second));
    for (const double value : row.metrics) text += "," + field(value);
    text += "\n";
  }
  write_file(path_ / "epochs.csv", text, syncs);
}

void RunFolder::write_evaluations(const std::vector<EvaluationRow>& rows, std::int64_t per_epoch,
                                  const std::vector<std::string>& metrics, Syncs syncs) const {
  std::string text = "epoch,minibatch,minibatches,samples,tokens,seconds,test_loss,test_accuracy";
  for (const std::string& name : metrics) text += ",test_" + name;
  text += "\n";
  for (const EvaluationRow& row : rows) {
    const std::int64_t last = row.minibatches - 1;
    text += concat(last / per_epoch, ",", last % per_epoch, ",", row.minibatches, ",",
                   field(row.samples), ",", field(row.tokens), ",", field(row.seconds), ",",
                   field(row.test_loss), ",", field(row.test_accuracy));
    for (const double value : row.metrics) text += "," + field(value);
    text += "\n";
  }
  write_file(evaluations(), text, syncs);
}

void RunFolder::write_traffic(const std::vector<TrafficRow>& rows, Syncs syncs) const {
  std::string text =
      "from,to,from_worker,to_worker,minibatches,messages,value_bytes,sent_bytes,ratio,"
      "encode_seconds,decode_seconds,train_seconds,required_bytes_per_second,kind\n";
  for (const TrafficRow& row : rows) {
    const EdgeTraffic& edge = row.edge;
    text += concat(edge.from, ",", edge.to, ",", row.from_worker, ",", row.to_worker, ",",
                   row.minibatches, ",", edge.messages, ",", exact(edge.value_bytes), ",",
                   exact(edge.sent_bytes), ",", field(edge.sent_bytes / edge.value_bytes), ",",
                   field(edge.reduces() ? kNoNumber : edge.encode_seconds), ",",
                   field(edge.reduces() ? kNoNumber : edge.decode_seconds), ",", field(row.seconds),
                   ",", field(edge.sent_bytes / row.seconds), ",", kind_of(edge), "\n");
  }
  write_file(traffic(), text, syncs);
}

void RunFolder::write_last_actions(int worker, const std::string& actions) const {
  write_file(path_ / concat("last-actions-", worker, ".txt"), actions);
}

NumberTable read_number_table(const std::filesystem::path& path, std::string_view words) {
  const std::string text = read_file(path, kLargestTable);
  NumberTable table;
  CsvReader reader(text, path.string());
  while (reader.next_of_table(table.columns)) {
    std::vector<double>& row = table.rows.emplace_back();
    for (const CsvField& field : reader.fields())
      row.push_back(table.columns[row.size()] == words ? kNoNumber : number_of(reader, field));
  }
  return table;
}

double number_of(const CsvReader& reader, const CsvField& field) {
  if (field.text.empty()) return kNoNumber;
  if (const auto number = parsed<double>(field.text)) return *number;
  reader.fail(field.column, concat("'", field.text, "' is not a number"));
}

}  // namespace pipewright
