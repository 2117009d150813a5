/// Why a schedule stops: from what each worker waits for when none can go on, to where it began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// What a worker's next action waits for.
struct Wait {
  enum class For : std::uint8_t {
    Nothing,   ///< the worker has done all of its actions
    Input,     ///< what another action makes
    Room,      ///< on a link that is full, until its receiver takes a message
    Reduction  ///< of another replica
  };
  ActionPlace action = kNowhere;  ///< that waits
  For what = For::Nothing;
  ActionPlace input = kNowhere;  ///< For::Input; kNowhere: nothing produces it
  int worker = -1;               ///< that would have to go on first; −1: none could help
};

struct Deadlock {
  ActionPlace root;  ///< that stands where it cannot be right, or, of a circle, one of those in it
  std::string message;  ///< "0B0 can never start: it waits for …", to the root
};

/// Follows the waits from the first worker that has one. The root is an action that needs one later
/// on its own worker, one whose input nobody makes, or where neither is met, one of the circle
/// that the waits close. `waits`: one per worker, of which one at least waits.
Deadlock explain_deadlock(const Schedule& schedule, const PassIndex& index,
                          const std::vector<Wait>& waits);

}  // namespace pipewright
