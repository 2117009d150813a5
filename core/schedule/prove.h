// SPDX-License-Identifier: Apache-2.0
/// Proves a schedule, once, before anything is made of it. Whatever relies on a schedule that is
/// right (simulator, drawings, costs, stability, compiler) takes a ProvedSchedule, which has with
/// it all that the proof has found.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/invalid_schedule.h"
#include "core/schedule/loop.h"
#include "core/schedule/schedule.h"
#include "core/schedule/versions.h"

namespace pipewright {

/// A schedule that has been proved. Only prove() and find_loop() make one.
struct ProvedSchedule {
  Schedule schedule;  ///< its loop, if it has one, stands in it once
  PassIndex index;
  /// All actions, each after those that make its inputs: what `serial` runs. The loop, if there is
  /// one, is performed Loop::rounds times in it.
  std::vector<ActionPlace> order;
  Versions versions;
  std::optional<Loop> loop;

  /// Mini-batches with all rounds.
  int minibatches() const;

 protected:
  ProvedSchedule() = default;

 private:
  friend ProvedSchedule prove(Schedule&& schedule);
};

/// Checks completeness (each pass once, each gradient consumed by one later update), order (inputs
/// are produced before use), absence of deadlock under the link capacities, and versions. Throws
/// InvalidSchedule, or Error{Schedule} where the numbers in it are out of their ranges; the
/// schedule is then as it was.
ProvedSchedule prove(Schedule&& schedule);
inline ProvedSchedule prove(const Schedule& schedule) {
  return prove(Schedule(schedule));
}

/// The actions of all schedules that this process has proved, for tests of what is proved how
/// often.
std::int64_t proved_actions();

}  // namespace pipewright
