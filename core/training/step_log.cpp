// SPDX-License-Identifier: Apache-2.0
#include "core/training/step_log.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/records/checkpoint_files.h"

namespace pipewright {
namespace {

constexpr std::string_view kTable = "steps";

constexpr std::string_view kPlace = "epoch,minibatch", kRate = "lr";

std::string header_of(const std::vector<std::string>& columns) {
  return concat(kPlace, ",", join(columns, ","), "\n");
}

/// The columns of losses.
std::vector<std::string> losses_of(std::vector<std::string> columns) {
  std::erase(columns, kRate);
  return columns;
}

/// Puts rows of a file with other columns into ours.
class ColumnChange {
 public:
  ColumnChange(const std::string& header, const std::vector<std::string>& columns) {
    std::vector<std::string> old = split(header, ',');
    old.erase(old.begin(), old.begin() + 2);
    const bool same_stages = losses_of(old) == losses_of(columns);
    for (const std::string& column : columns) {
      const auto found = std::ranges::find(old, column);
      const bool kept = same_stages || column == "loss" || column == kRate;
      from_.push_back(kept && found != old.end() ? std::optional(found - old.begin() + 2)
                                                 : std::nullopt);
    }
  }

  std::string row(std::string_view line) const {
    const std::vector<std::string> old = split(line, ',');
    std::string text = concat(old[0], ",", old[1]);
    for (const auto& from : from_)
      text += concat(",", from ? old.at(static_cast<std::size_t>(*from)) : "");
    return text + "\n";
  }

 private:
  std::vector<std::optional<std::ptrdiff_t>> from_;  ///< places in the old row
};

}  // namespace

std::vector<std::string> step_columns(const std::vector<int>& auxiliary, bool lr_per_step) {
  std::vector<std::string> columns{"loss"};
  for (const int stage : auxiliary) columns.push_back(concat("loss_", stage));
  if (lr_per_step) columns.emplace_back(kRate);
  return columns;
}

RowLog begin_steps(const std::filesystem::path& folder, std::int64_t minibatches,
                   const std::vector<std::string>& columns) {
  return RowLog::begin(folder, kTable, minibatches, header_of(columns));
}

RowLog go_on_with_steps(const std::filesystem::path& folder, const RowLogPart& part,
                        std::int64_t minibatches, const std::vector<std::string>& columns) {
  constexpr std::int64_t kLongest = 1 << 12;  // header
  RowLogPart beginning = part;
  beginning.bytes = std::min(part.bytes, kLongest);
  std::string header;
  read_row_log(folder, beginning, [&](std::string_view line) {
    if (header.empty()) header = line;
  });
  if (concat(header, "\n") == header_of(columns)) return RowLog::go_on(folder, part);
  const ColumnChange change(header, columns);
  const std::string number = checkpoint_folder_name(minibatches);
  const bool taken = part.name == concat(kTable, "-", number, ".csv");
  RowLog log = begin_steps(folder, minibatches + (taken ? 1 : 0), columns);
  std::string rows;
  bool first = true;
  read_row_log(folder, part, [&](std::string_view line) {
    if (!std::exchange(first, false)) rows += change.row(line);
    if (rows.size() < 1 << 16) return;
    log.append(rows);
    rows.clear();
  });
  log.append(rows);
  return log;
}

std::string step_rows(const std::vector<std::vector<double>>& numbers, std::int64_t first,
                      std::int64_t minibatches_per_epoch) {
  std::string rows;
  for (const std::vector<double>& minibatch : numbers) {
    rows += concat(first / minibatches_per_epoch, ",", first % minibatches_per_epoch);
    for (const double number : minibatch) {
      rows += ',';
      append_number(rows, number);
    }
    rows += '\n';
    ++first;
  }
  return rows;
}

}  // namespace pipewright
