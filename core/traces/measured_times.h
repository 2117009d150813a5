// SPDX-License-Identifier: Apache-2.0
/// How the workers of a measured run spent their time, and the plan that it is compared with.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"
#include "core/traces/idle.h"

namespace pipewright {

struct WorkerTime {
  double busy = 0;          ///< s in which an action computed, codecs included
  double sending = 0;       ///< s that it could do nothing else because it sent
  double waiting = 0;       ///< s that it waited for others, or had nothing left to do
  double other = 0;         ///< s in which no action ran and none was waited for
  double coding = 0;        ///< s of codecs, part of `busy`
  int longest_for = -1;     ///< worker that it waited for longest; −1: it waited for none
  double longest_wait = 0;  ///< s that it waited for that one
};

struct MeasuredTimes {
  double makespan = 0;  ///< s
  double bubble = 0;    ///< waiting time of all workers as a fraction of their time
  std::vector<WorkerTime> workers;
};

MeasuredTimes measured_times(const ProvedSchedule& proved, const Spans& spans);

/// Simulates the schedule with the medians of what its actions took: what the run would have been
/// without stragglers and transfers.
Simulation planned(const ProvedSchedule& proved, const Spans& spans);

/// The times as a text. `in_turns`: the workers took turns in one thread, so that a bubble and
/// waits mean nothing.
std::string measured_times_text(const ProvedSchedule& proved, const Spans& spans, bool in_turns);

/// The longest idle times, at most `most`, one line each: who waited with which action for which
/// worker, and what was to blame.
std::string idle_text(const ProvedSchedule& proved, const Spans& spans, int most,
                      MessagePath messages);

/// One sentence: how much of their time the workers computed, what most of the idle time is to be
/// blamed on, and how much longer the run took than `planned` seconds.
std::string timeline_answer(const ProvedSchedule& proved, const Spans& spans, bool in_turns,
                            MessagePath messages, double planned);

/// A line on more workers than cores of one machine, which cannot all run at the same time, so that
/// waits are the operating system's, too; "" if there are enough.
std::string shared_cores_remark(std::size_t workers, std::int64_t cores);

}  // namespace pipewright
