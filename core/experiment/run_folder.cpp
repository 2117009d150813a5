#include "core/experiment/run_folder.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/file.h"

namespace pipewright {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kEpochsHeader =
    "epoch,train_loss,test_loss,test_accuracy,lr,seconds,samples_per_second";

std::string field(double value) {
  return std::isnan(value) ? std::string() : number_text(value);
}

/// 17 significant digits, as the contract says: every double reads back as itself.
std::string exact(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 17);
  return {text, end.ptr};
}

double parsed(std::string_view text, const std::filesystem::path& path, std::size_t line) {
  if (text.empty()) return kNotMeasured;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size())
    throw Error(ErrorKind::Data, concat("'", text, "' is not a number"),
                concat(path.string(), ":", line));
  return value;
}

const char* kind_of(const EdgeTraffic& edge) {
  return edge.reduces() ? "reduce" : edge.from < edge.to ? "forward" : "backward";
}

}  // namespace

std::string RunFolder::state() const {
  if (!std::filesystem::exists(path_ / "run.json")) return "missing";
  const Value run = load_yaml(path_ / "run.json");
  const Value* state = run.find("state");
  return state != nullptr ? state->text : "missing";
}

void RunFolder::clear() const {
  for (const char* file : {"experiment.yaml", "run.json", "steps.csv", "epochs.csv", "traffic.csv",
                           "final.safetensors", "trace.json", "checkpoint"})
    std::filesystem::remove_all(path_ / file);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path_, none))
    if (entry.path().filename().string().starts_with("last-actions-"))
      std::filesystem::remove(entry.path());
}

void RunFolder::write_experiment(const Value& resolved) const {
  write_file(path_ / "experiment.yaml", to_yaml(resolved));
}

void RunFolder::write_state(const Value& run) const {
  write_file(path_ / "run.json", to_json(run) + "\n");
}

void RunFolder::write_epochs(const std::vector<EpochRow>& rows,
                             const std::vector<std::string>& metrics) const {
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
  write_file(path_ / "epochs.csv", text);
}

void RunFolder::write_traffic(const std::vector<TrafficRow>& rows) const {
  std::string text =
      "from,to,from_worker,to_worker,minibatches,messages,value_bytes,sent_bytes,ratio,"
      "encode_seconds,decode_seconds,train_seconds,required_bytes_per_second,kind\n";
  for (const TrafficRow& row : rows) {
    const EdgeTraffic& edge = row.edge;
    text +=
        concat(edge.from, ",", edge.to, ",", row.from_worker, ",", row.to_worker, ",",
               row.minibatches, ",", edge.messages, ",", exact(edge.value_bytes), ",",
               exact(edge.sent_bytes), ",", field(edge.sent_bytes / edge.value_bytes), ",",
               field(edge.reduces() ? kNotMeasured : edge.encode_seconds), ",",
               field(edge.reduces() ? kNotMeasured : edge.decode_seconds), ",", field(row.seconds),
               ",", field(edge.sent_bytes / row.seconds), ",", kind_of(edge), "\n");
  }
  write_file(traffic(), text);
}

void RunFolder::write_last_actions(int worker, const std::string& actions) const {
  write_file(path_ / concat("last-actions-", worker, ".txt"), actions);
}

NumberTable read_number_table(const std::filesystem::path& path, std::string_view words) {
  const std::string text = read_file(path);
  NumberTable table;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line, ',');
    if (table.columns.empty()) {
      table.columns = fields;
      continue;
    }
    if (fields.size() != table.columns.size())
      throw Error(ErrorKind::Data,
                  concat("has ", fields.size(), " fields, the header ", table.columns.size()),
                  concat(path.string(), ":", number));
    std::vector<double>& row = table.rows.emplace_back();
    for (std::size_t c = 0; c < fields.size(); ++c)
      row.push_back(table.columns[c] == words ? kNotMeasured : parsed(fields[c], path, number));
  }
  return table;
}

}  // namespace pipewright
