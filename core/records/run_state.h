// SPDX-License-Identifier: Apache-2.0
/// run.json: the state of a run and what is known of it, written when the run starts and again when
/// it ends in any way.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/records/run_folder.h"

namespace pipewright {

/// Reads run.json. Throws Error{Data} if it cannot be read or is malformed.
Value read_run_json(const RunFolder& folder);

/// The last value of each column of epochs.csv that has one, without the number of the epoch.
Value final_metrics(const std::vector<EpochRow>& epochs, const std::vector<std::string>& metrics);

/// Process 0 has the whole record; another process of the run may add a failure to what is written.
class RunState {
 public:
  /// A run begins: process 0, which is `first`, writes `facts` on experiment, program and machine,
  /// and the remarks printed so far. The folder must outlive this object.
  RunState(const RunFolder& folder, bool first, const Value& facts, const Value& remarks);

  /// Records that the run is done, and what its last evaluation measured.
  void done(const Value& final);
  /// Records a failure, if none is recorded yet. Throws nothing, so that the failure itself is
  /// reported even if this cannot be written.
  void failed(const Error& error);

 private:
  void set(const std::string& key, Value value) { run_.at_or_add(key) = std::move(value); }
  void end(const std::string& state);

  const RunFolder& folder_;
  bool first_;
  Value run_ = Value::mapping();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double processor_start_;  ///< seconds
};

}  // namespace pipewright
