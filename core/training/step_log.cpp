// SPDX-License-Identifier: Apache-2.0
#include "core/training/step_log.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/records/checkpoint_files.h"

namespace pipewright {
namespace {

constexpr std::string_view kTable = "steps";

/// The row without its auxiliary losses: epoch, mini-batch and loss, then so many empty fields.
std::string reduced_row(std::string_view row, std::size_t auxiliary) {
  std::size_t end = 0;
  for (int field = 0; field < 3 && end < row.size(); ++field)
    end = std::min(row.find(',', end + (field > 0 ? 1 : 0)), row.size());
  return std::string(row.substr(0, end)) + std::string(auxiliary, ',') + "\n";
}

}  // namespace

std::string steps_header(const std::vector<int>& auxiliary) {
  std::string text = "epoch,minibatch,loss";
  for (const int stage : auxiliary) text += concat(",loss_", stage);
  return text + "\n";
}

RowLog begin_steps(const std::filesystem::path& folder, std::int64_t minibatches,
                   const std::vector<int>& auxiliary) {
  return RowLog::begin(folder, kTable, minibatches, steps_header(auxiliary));
}

RowLog go_on_with_steps(const std::filesystem::path& folder, const RowLogPart& part,
                        std::int64_t minibatches, const std::vector<int>& auxiliary) {
  const std::string header = steps_header(auxiliary);
  RowLogPart beginning = part;
  beginning.bytes = std::min<std::int64_t>(part.bytes, std::ssize(header));
  bool same = false;
  read_row_log(folder, beginning,
               [&](std::string_view line) { same = concat(line, "\n") == header; });
  if (same) return RowLog::go_on(folder, part);
  const std::string number = checkpoint_folder_name(minibatches);
  const bool taken = part.name == concat(kTable, "-", number, ".csv");
  RowLog log = begin_steps(folder, minibatches + (taken ? 1 : 0), auxiliary);
  std::string rows;
  bool first = true;
  read_row_log(folder, part, [&](std::string_view line) {
    if (!std::exchange(first, false)) rows += reduced_row(line, auxiliary.size());
    if (rows.size() < 1 << 16) return;
    log.append(rows);
    rows.clear();
  });
  log.append(rows);
  return log;
}

std::string step_rows(const std::vector<std::vector<double>>& losses, std::int64_t first,
                      std::int64_t minibatches_per_epoch) {
  std::string rows;
  for (const std::vector<double>& minibatch : losses) {
    rows += concat(first / minibatches_per_epoch, ",", first % minibatches_per_epoch);
    for (const double loss : minibatch) {
      rows += ',';
      append_number(rows, loss);
    }
    rows += '\n';
    ++first;
  }
  return rows;
}

}  // namespace pipewright
