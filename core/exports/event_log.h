// SPDX-License-Identifier: Apache-2.0
/// An event log: the event file of a run that goes on, in its folder. TensorBoard reads on in it
/// while it grows.
///
/// A resumed run truncates the file behind the last record that belongs to its checkpoint, and
/// appends. A second file, or a record that marks a restart, would leave the numbers of the lost
/// mini-batches in the folder, where only readers that purge them show each step once; and a
/// TensorBoard that has the file open reads on, because the run repeats the lost records with the
/// same steps, tags and lengths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "core/exports/event_records.h"
#include "core/system/descriptor.h"

namespace pipewright {

/// For one thread at a time. All functions throw Error{Data}.
class EventLog {
 public:
  /// Creates the file, or replaces that of an earlier run.
  static EventLog begin(const std::filesystem::path& file);
  /// Continues behind the last record that is undamaged and for which `keeps` holds. A missing
  /// file is created.
  static EventLog go_on(const std::filesystem::path& file,
                        const std::function<bool(const EventPlace&)>& keeps);

  /// Appends the numbers of a step at the present time. They reach the file with flush(), which is
  /// called after every 100 records, too.
  void add(std::int64_t step, std::span<const TaggedValue> values);
  void flush();
  /// Flushes and syncs the file, so that it survives a power cut.
  void sync();

 private:
  explicit EventLog(std::filesystem::path file);

  std::filesystem::path file_;
  Descriptor descriptor_;
  std::string waiting_;
  int records_waiting_ = 0;
};

}  // namespace pipewright
