// SPDX-License-Identifier: Apache-2.0
/// The part of a schedule's time that a drawing shows.
#pragma once

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"
#include "core/schedule/slots.h"

namespace pipewright {

/// Slots [from, to). All actions of these slots are drawn, whichever mini-batch they belong to, and
/// those that go on beyond an end are drawn whole, so that a cut never looks like a drain.
struct RenderWindow {
  int from = 0;
  int to = 0;
};

/// The window from the start until `minibatches` are done (0: all); with a culprit, so many
/// mini-batches around it.
RenderWindow render_window(const Schedule& schedule, const SlotTimes& times, int minibatches,
                           const ActionPlace* culprit = nullptr);

/// Whether there is an action at this place of the schedule.
bool exists(const Schedule& schedule, const ActionPlace& place);

}  // namespace pipewright
