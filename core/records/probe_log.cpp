// SPDX-License-Identifier: Apache-2.0
#include "core/records/probe_log.h"

#include <fstream>

#include "core/base/csv.h"
#include "core/base/parsed.h"
#include "core/records/run_folder.h"
#include "core/records/run_record.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProbeFields = 6;
constexpr std::uint64_t kLargestLog = 1 << 30;  // bytes

/// The value of a row; none if it has none. Throws Error{Data}.
std::optional<ProbeValue> probe_value(const CsvReader& row) {
  const std::vector<CsvField>& fields = row.fields();
  if (fields.size() != kProbeFields)
    row.fail(1,
             concat("has ", fields.size(), " fields; expected ", std::string_view(kProbeHeader)));
  if (fields[5].text.empty()) return std::nullopt;
  const auto whole = [&](std::size_t i) {
    if (const auto number = parsed<int>(fields[i].text)) return *number;
    row.fail(fields[i].column, concat("'", fields[i].text, "' is not a whole number"));
  };
  const auto stage = fields[2].text.empty() ? std::nullopt : std::optional(whole(2));
  return ProbeValue{whole(0),
                    whole(1),
                    stage,
                    std::string(fields[3].text),
                    std::string(fields[4].text),
                    number_of(row, fields[5])};
}

}  // namespace

std::vector<ProbeValue> read_probe_log(const fs::path& run_folder) {
  const fs::path file = run_folder / "probes.csv";
  if (!is_there(file)) return {};
  const std::string text = read_file(file, kLargestLog);
  CsvReader reader(text, file.string());
  std::vector<ProbeValue> values;
  while (reader.next() && reader.complete()) {  // the last line may still be being written
    if (reader.line() == 1) {
      if (join(reader.texts(), ",") != kProbeHeader)
        reader.fail(
            1, concat("is no header of probes.csv; expected ", std::string_view(kProbeHeader)));
    } else if (!reader.fields().empty()) {
      if (auto value = probe_value(reader)) values.push_back(*std::move(value));
    }
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
  const fs::path steps = RunFolder(run_folder).steps();
  std::error_code none;
  if (!fs::is_regular_file(steps, none)) return std::nullopt;  // a FIFO would block
  std::ifstream file(steps);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;  // the header
  int count = 0;
  while (std::getline(file, line) && line.starts_with("0,")) ++count;
  return count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace pipewright
