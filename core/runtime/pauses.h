// SPDX-License-Identifier: Apache-2.0
/// Where an execution can pause after some mini-batches: at a place of the execution order, so that
/// every worker gets there whatever the execution.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/runtime/program.h"

namespace pipewright {

struct Pause {
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  int minibatches = 0;           ///< all of whose actions come before it
  std::int64_t position = kAll;  ///< actions before it in the execution order, with all rounds
  std::vector<std::int64_t> performed;  ///< of these those of each worker
  int updated = 0;  ///< mini-batches all of whose updates come before it, at least `minibatches`
  /// Whether it is no pause, but behind everything.
  bool is_end() const { return position == kAll; }
};

/// The first pauses after so many mini-batches, which rise. None lies between the reductions of the
/// replicas of a stage, which wait for each other; it comes later then.
std::vector<Pause> pauses_of(const Program& program, const std::vector<int>& minibatches);

/// The worker of that action of the execution order, with all rounds.
int worker_at(const Program& program, std::int64_t position);

}  // namespace pipewright
