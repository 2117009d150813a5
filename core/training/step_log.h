// SPDX-License-Identifier: Apache-2.0
/// The step log: an append-only file of the rows of steps.csv in the checkpoints' folder, so that
/// written steps need no memory. After a kill it may have more rows than the last checkpoint
/// records, or an incomplete row; a resumed run truncates it to that checkpoint. steps.csv itself
/// is a copy that is replaced by an atomic rename.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file.h"

namespace pipewright {

/// The part of the file that belongs to a checkpoint.
struct StepLogPart {
  std::string name;  ///< "steps-000000.csv"; "": there is no step log
  std::int64_t bytes = 0;
  std::string checksum;  ///< CRC-32 of these bytes, 8 hex digits
};

/// The header "epoch,minibatch,loss,loss_2"; columns of auxiliary losses are named after their
/// stage.
std::string steps_header(const std::vector<int>& auxiliary);

/// Throws Error{Data} that names the file if it does not begin with that part.
void check_step_log(const std::filesystem::path& folder, const StepLogPart& part);

/// For one process at a time. All functions throw Error{Data}.
class StepLog {
 public:
  /// Creates a file, or truncates an existing one. `minibatches`: trained before its first row.
  static StepLog begin(const std::filesystem::path& folder, std::int64_t minibatches,
                       const std::vector<int>& auxiliary);
  /// Continues after a part that check_step_log() has accepted. If the columns differ, it creates a
  /// new file with the old rows, whose auxiliary losses are left empty, because they belong to
  /// other stages.
  static StepLog go_on(const std::filesystem::path& folder, const StepLogPart& part,
                       std::int64_t minibatches, const std::vector<int>& auxiliary);
  StepLog(StepLog&& other) noexcept;
  StepLog& operator=(StepLog&& other) noexcept;
  ~StepLog();

  /// Appends one row, with 17 significant digits, per mini-batch from number `first` on:
  /// losses[m][0] is its loss, the others are auxiliary losses; NaN becomes an empty field. All
  /// rows are written by one call.
  void append(const std::vector<std::vector<double>>& losses, std::int64_t first,
              std::int64_t minibatches_per_epoch);
  /// Syncs the file, so that its rows survive a power cut.
  void sync() const;
  /// The whole present content.
  StepLogPart part() const;
  /// Copies the rows to another file, which is replaced by an atomic rename.
  void copy_to(const std::filesystem::path& path, Syncs syncs = {}) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  StepLog(std::filesystem::path path, int flags);
  void write(std::string_view text);
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace pipewright
