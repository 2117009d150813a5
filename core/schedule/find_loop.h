// SPDX-License-Identifier: Apache-2.0
/// Proves a long training by two short schedules.
///
/// With a body of P mini-batches, the schedule of n + rP mini-batches is the one of n mini-batches
/// with r more copies of the body after it, each P mini-batches later than the copy before; what
/// follows is rP mini-batches later. find_loop() proves this, and that prove() accepts all of
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

#include <functional>
#include <optional>

#include "core/schedule/prove.h"

namespace pipewright {

/// Makes a scheme's schedule of that many mini-batches.
using ScheduleMaker = std::function<Schedule(int minibatches)>;

/// The schedule of `minibatches` mini-batches as a loop, if those of few mini-batches show one and
/// are right. Empty if they do not, or if the whole schedule is short. Needs a scheme that says
/// that its schedules repeat themselves (Scheme::repeats()), and looks whether that is so: it makes
/// the whole schedule if that has at most 200,000 actions, else schedules of three other lengths,
/// and compares them with the loop. Throws Error{Schedule} if they differ.
std::optional<ProvedSchedule> find_loop(const ScheduleMaker& make, int minibatches);

}  // namespace pipewright
