// SPDX-License-Identifier: Apache-2.0
#include "core/records/probe_log.h"

#include <charconv>
#include <fstream>

#include "core/base/error.h"
#include "core/records/run_folder.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProbeFields = 6;
constexpr std::uint64_t kLargestLog = 1 << 30;  // bytes

template <class Number>
std::optional<Number> whole_number(const std::string& text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

/// One line of the file; none if it has no value. Throws Error{Data} at `where`.
std::optional<ProbeValue> probe_value(const std::string& line, const std::string& where) {
  const std::vector<std::string> fields = split(line, ',');
  if (fields.size() != kProbeFields)
    throw Error(ErrorKind::Data,
                concat("has ", fields.size(), " fields; expected ", std::string_view(kProbeHeader)),
                where);
  if (fields[5].empty()) return std::nullopt;
  const auto epoch = whole_number<int>(fields[0]), minibatch = whole_number<int>(fields[1]),
             stage = whole_number<int>(fields[2]);
  const auto value = whole_number<double>(fields[5]);
  if (!epoch || !minibatch || !value || (!stage && !fields[2].empty()))
    throw Error(ErrorKind::Data,
                "has a field that is no number; expected numbers as epoch, minibatch, stage (or "
                "nothing) and value",
                where);
  return ProbeValue{*epoch, *minibatch, stage, fields[3], fields[4], *value};
}

}  // namespace

std::vector<ProbeValue> read_probe_log(const fs::path& run_folder) {
  const fs::path file = run_folder / "probes.csv";
  std::error_code none;
  if (fs::status(file, none).type() == fs::file_type::not_found) return {};
  std::vector<std::string> lines = split(read_file(file, kLargestLog), '\n');
  lines.pop_back();  // what follows the last line feed: nothing, or a line that is being written
  std::vector<ProbeValue> values;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = concat(file.string(), ":", i + 1);
    if (i == 0 && lines[i] != kProbeHeader)
      throw Error(ErrorKind::Data,
                  concat("is no header of probes.csv; expected ", std::string_view(kProbeHeader)),
                  where);
    if (i == 0 || lines[i].empty()) continue;
    if (auto value = probe_value(lines[i], where)) values.push_back(*std::move(value));
  }
  return values;
}

LastProbeValues last_probe_values(const fs::path& run_folder, std::string_view probe,
                                  std::string_view quantity) {
  LastProbeValues last;
  for (const ProbeValue& each : read_probe_log(run_folder)) {
    if (each.probe != probe || each.quantity != quantity) continue;
    if (each.stage)
      last.stages[*each.stage] = each.value;
    else
      last.model = each.value;
  }
  return last;
}

std::optional<int> minibatches_per_epoch(const fs::path& run_folder) {
  std::ifstream file(RunFolder(run_folder).steps());
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;  // the header
  int count = 0;
  while (std::getline(file, line) && line.starts_with("0,")) ++count;
  return count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace pipewright
