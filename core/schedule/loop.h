// SPDX-License-Identifier: Apache-2.0
/// The middle of a long schedule that repeats itself. A long training is then proved, compiled and
/// kept as a short schedule in which one part, the body, is performed many times.
///
/// With a body of P mini-batches, the schedule of n + rP mini-batches is the one of n mini-batches
/// with r more copies of the body after it, each P mini-batches later than the copy before; what
/// follows is rP mini-batches later. find_loop() proves this, and that validate() accepts all of
/// these schedules because it accepts those of n and n + P:
///  - Each of the two has every pass exactly once. What the copy adds are then the passes of P
///    mini-batches, and the next copy adds those of the P mini-batches after them.
///  - Every other rule speaks of the actions of one mini-batch, or of one version of a stage's
///    weights, and of their order. No mini-batch or version that the body touches is touched by
///    what is irregular before or after it. So the surroundings of an action in any copy are, P
///    mini-batches at a time, those of the same action in the short schedule.
///  - Before and after the body, every worker is at the same place of its own body. So the order in
///    which the body can be performed once is one in which it can be performed again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// What is later in a round of a loop than in the round before.
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

/// A schedule that has been proved: it can be performed in `order`, with its loop, if it has one,
/// performed so many rounds.
struct ProvedSchedule {
  Schedule schedule;  ///< its loop stands in it once
  std::vector<ActionPlace> order;
  std::optional<Loop> loop;

  /// Mini-batches with all rounds.
  int minibatches() const;
};

/// Makes a scheme's schedule of that many mini-batches.
using ScheduleMaker = std::function<Schedule(int minibatches)>;

/// The schedule of `minibatches` mini-batches as a loop, if those of few mini-batches show one and
/// are right. Empty if they do not, or if the whole schedule is short. Needs a scheme that says
/// that its schedules repeat themselves (Scheme::repeats()), and looks whether that is so: it makes
/// the whole schedule if that has at most 200,000 actions, else schedules of three other lengths,
/// and compares them with the loop. Throws Error{Schedule} if they differ.
std::optional<ProvedSchedule> find_loop(const ScheduleMaker& make, int minibatches);

/// The schedule with the body copied `rounds` − 1 times: what a loop of so many rounds stands for.
Schedule unrolled(const Schedule& schedule, const Loop& loop, int rounds);

}  // namespace pipewright
