/// The part of a schedule's time that a drawing shows.
#pragma once

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"
#include "core/schedule/slots.h"

namespace pipewright {

/// Slots [from, to). What goes on then is drawn whole, whichever mini-batch it belongs to, so that
/// a cut never looks like a drain.
struct RenderWindow {
  int from = 0;
  int to = 0;
};

/// From the start until `minibatches` (0: all) are done; with a culprit, as many around it.
RenderWindow render_window(const Schedule& schedule, const SlotTimes& times, int minibatches,
                           const ActionPlace* culprit = nullptr);

/// Whether the place is one of the schedule's.
bool exists(const Schedule& schedule, const ActionPlace& place);

}  // namespace pipewright
