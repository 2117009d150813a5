// SPDX-License-Identifier: Apache-2.0
/// A row log: an append-only file of the rows of a table, steps.csv or probes.csv, in the
/// checkpoints' folder, so that written rows need no memory. After a kill it may have more rows
/// than the last checkpoint records, or an incomplete row; a resumed run truncates it to that
/// checkpoint. The table itself is a copy that is replaced by an atomic rename.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/system/descriptor.h"
#include "core/system/file.h"

namespace pipewright {

/// The part of the file that belongs to a checkpoint.
struct RowLogPart {
  std::string name;  ///< "steps-000000.csv"; "": there is no log
  std::int64_t bytes = 0;
  std::string checksum;  ///< CRC-32 of these bytes, 8 hex digits
};

/// Throws Error{Data} that names the file if it does not begin with that part.
void check_row_log(const std::filesystem::path& folder, const RowLogPart& part);

/// Calls `take` for every line of the part, the header first, without its line break. Throws
/// Error{Data}, also for a line of more than 64 KiB, which no table has.
void read_row_log(const std::filesystem::path& folder, const RowLogPart& part,
                  const std::function<void(std::string_view line)>& take);

/// Appends a number with 17 significant digits, from which every double reads back exactly; NaN
/// adds nothing.
void append_number(std::string& text, double value);

/// For one process at a time. All functions throw Error{Data}.
class RowLog {
 public:
  /// Creates the file `<table>-<minibatches>.csv`, or truncates an existing one, and writes the
  /// header, a line. `minibatches`: trained before its first row.
  static RowLog begin(const std::filesystem::path& folder, std::string_view table,
                      std::int64_t minibatches, std::string_view header);
  /// Continues after a part that check_row_log() has accepted.
  static RowLog go_on(const std::filesystem::path& folder, const RowLogPart& part);
  /// Appends whole lines by one call.
  void append(std::string_view rows);
  /// Syncs the file, so that its rows survive a power cut.
  void sync() const;
  /// The whole present content.
  RowLogPart part() const;
  /// Copies the rows to another file, which is replaced by an atomic rename.
  void copy_to(const std::filesystem::path& path, Syncs syncs = {}) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  RowLog(const std::filesystem::path& path, int flags);
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace pipewright
