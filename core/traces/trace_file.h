// SPDX-License-Identifier: Apache-2.0
/// Reads the trace.json of a run back: which actions every worker performed, and when.
#pragma once

#include <filesystem>

#include "core/schedule/prove.h"
#include "core/traces/idle.h"

namespace pipewright {

/// A measured trace. The schedule's actions all use the latest weights, because a trace does not
/// need to know more.
struct MeasuredTrace {
  ProvedSchedule proved;  ///< its passes all read the latest weights: a trace does not have theirs
  Spans spans;
  bool in_turns = false;    ///< execution: serial; workers took turns in one thread
  bool in_threads = false;  ///< execution: threads; workers shared the cores of one process
};

/// Throws Error{Data} if the file is missing, damaged, not the trace of a run, or of more than
/// 16 MiB.
MeasuredTrace read_trace(const std::filesystem::path& file);

/// The spans by a clock that begins with the first action: until then threads and processes were
/// started.
Spans from_first_action(Spans spans);

}  // namespace pipewright
