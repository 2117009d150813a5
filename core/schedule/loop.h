// SPDX-License-Identifier: Apache-2.0
/// The middle of a long schedule that repeats itself. A long training is proved, compiled and kept
/// as a short schedule in which one part, the body, is performed many times (find_loop.h).
#pragma once

#include <cstddef>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// The numbers by which a round of a loop is later than the one before.
struct Step {
  int minibatches = 0;       ///< P
  std::vector<int> updates;  ///< [replica · N + stage]: updates of the stage in one round
};

/// The action `rounds` rounds later.
Action later(Action action, const Step& step, int stages, int rounds);

struct Loop {
  /// Actions [begin, end) of one worker, or places [begin, end) of the execution order.
  struct Part {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    bool operator==(const Part&) const = default;
  };
  Step step;
  std::vector<Part> bodies;  ///< [worker]
  Part order;                ///< the body's actions in the execution order
  int rounds = 1;            ///< how often the body is performed
};

/// The schedule with the body copied `rounds` − 1 times: what a loop of so many rounds stands for.
Schedule unrolled(const Schedule& schedule, const Loop& loop, int rounds);

}  // namespace pipewright
