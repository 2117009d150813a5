// SPDX-License-Identifier: Apache-2.0
#include "core/training/probe_rows.h"

#include <sstream>

#include "core/base/error.h"
#include "core/records/probe_log.h"

namespace pipewright {

RowLog begin_probes(const std::filesystem::path& folder, std::int64_t minibatches) {
  return RowLog::begin(folder, "probes", minibatches, concat(kProbeHeader, "\n"));
}

std::string probe_rows(const std::vector<ProbeRow>& rows, const std::vector<NamedProbe>& probes,
                       std::int64_t minibatches_per_epoch) {
  std::string text;
  for (const ProbeRow& row : rows) {
    text +=
        concat(row.minibatch / minibatches_per_epoch, ",", row.minibatch % minibatches_per_epoch,
               ",", row.stage < 0 ? std::string() : std::to_string(row.stage), ",",
               probes[static_cast<std::size_t>(row.probe)].name, ",", row.quantity, ",");
    append_number(text, row.value);
    text += '\n';
  }
  return text;
}

std::string packed(const std::vector<ProbeRow>& rows) {
  std::string text;
  for (const ProbeRow& row : rows) {
    text += concat(row.minibatch, " ", row.stage, " ", row.probe, " ", row.quantity, " ");
    append_number(text, row.value);
    text += '\n';
  }
  return text;
}

std::vector<ProbeRow> unpacked(const std::string& bytes) {
  std::vector<ProbeRow> rows;
  std::istringstream text(bytes);
  for (std::string line; std::getline(text, line);) {
    ProbeRow row;
    std::istringstream fields(line);
    fields >> row.minibatch >> row.stage >> row.probe >> row.quantity >> row.value;
    if (!fields) throw Error(ErrorKind::Worker, "a worker has sent damaged rows of probes.csv");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace pipewright
