/// A schedule made ready to execute: messages numbered, weights resolved, graphs' ends marked.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "core/schedule/versions.h"

namespace pipewright {

struct Instruction {
  Action action;
  /// As resolved, but an Update directly before a pass that predicts from the version it makes
  /// does that in its own pass over memory: it has the pass's `key` and `makes`.
  ActionWeights weights;
  int receive = -1;       ///< message it takes; −1: none
  int send = -1;          ///< message it makes
  int receive_link = -1;  ///< link between two workers it comes over; −1: same worker
  int send_link = -1;
  int send_to = -1;             ///< worker that takes it
  bool input_gradient = false;  ///< forward: will be asked for; backward: somebody takes it
  bool last_pass = false;       ///< backward: its stage's last of the micro-batch, halves of
                                ///< weights apart
  bool first_half = false;      ///< input-only backward: a weight-only one follows
  int update_minibatch = 0;     ///< of the stage's next update, whose learning rate predicts …
  double update_scale = 1;      ///< … times its scale
};

struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> workers;
  std::vector<ActionPlace> serial_order;
  Versions versions;
  int messages = 0;
  std::vector<int> link_from;  ///< link → worker that sends on it
};

/// Validates and compiles. Throws Error{Schedule}.
Program compile(Schedule schedule);

}  // namespace pipewright
