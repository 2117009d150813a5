// SPDX-License-Identifier: Apache-2.0
/// Explains a deadlock: follows what each worker waits for, when none can go on, to where it began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The reason why a worker's next action cannot start.
struct Wait {
  enum class For : std::uint8_t {
    Nothing,    ///< the worker has done all of its actions
    Input,      ///< the output of another action
    Room,       ///< room on a full link, until its receiver takes a message
    Reduction,  ///< the same Reduce of another replica
    Turn,       ///< the first message on its input's link, which its worker takes later, is another
    Receive,    ///< the receive of the message that it sends
    Engine      ///< its input's turn at the sender, which sends another message first
  };
  ActionPlace action = kNowhere;  ///< the action that waits
  For what = For::Nothing;
  /// For::Input, For::Engine: the action that makes it; kNowhere: none does. For::Turn: the action
  /// that takes the first message.
  ActionPlace input = kNowhere;
  bool beside = false;  ///< For::Input: the backward of its fused pair needs the input
  int worker = -1;      ///< the worker that must go on first; −1: none could help
};

struct Deadlock {
  ActionPlace root;     ///< the misplaced action, or an action in the cycle of waits
  std::string message;  ///< "0B0 can never start: it waits for …", up to the root
};

/// Follows the waits from the first worker that waits. The root is an action that needs a later
/// action of its own worker, or one whose input no action makes, or else one of the actions in the
/// cycle that the waits form. `waits` has one entry per worker; at least one must wait.
Deadlock explain_deadlock(const Schedule& schedule, const PassIndex& index,
                          const std::vector<Wait>& waits);

}  // namespace pipewright
