/// A schedule made ready to execute: messages numbered, weights resolved, graphs' ends marked.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "core/schedule/versions.h"

namespace pipewright {

/// One end of a message between two instructions.
struct Port {
  int message = -1;  ///< −1: there is none
  int link = -1;     ///< between two workers, which it goes over; −1: same worker
  int to = -1;       ///< worker that takes it
  bool used() const { return message >= 0; }
};

/// Tensors of skip connections among a pass's inputs or outputs that come straight from stages
/// before its neighbour, or go to stages beyond it. They stand together.
struct Straight {
  struct Group {
    int stage = 0;  ///< at the other end
    Port port;
    int count = 0;
    bool gradients = false;  ///< go back for any of them
  };
  std::vector<Group> groups;  ///< as they stand
  int behind = 0;             ///< tensors of neighbours' skip connections that stand behind them
  int count() const;
};

struct Instruction {
  Action action;
  /// As resolved, but an Update directly before a pass that predicts from the version it makes
  /// does that in its own pass over memory: it has the pass's `key` and `makes`.
  ActionWeights weights;
  Port receive, send;  ///< message it takes, message it makes
  Straight straight_received, straight_sent;
  bool input_gradient = false;  ///< forward: will be asked for; backward: somebody takes it
  bool recomputed = false;      ///< forward: will be run again before its backwards
  bool last_pass = false;       ///< backward: its stage's last of the micro-batch, halves of
                                ///< weights apart
  bool first_half = false;      ///< input-only backward: a weight-only one follows
  int update_minibatch = 0;     ///< of the stage's next update, whose learning rate predicts …
  double update_scale = 1;      ///< … times its scale
};

/// All messages it makes, in the order they are sent.
std::vector<Port> sends_of(const Instruction& instruction);

struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> workers;
  std::vector<ActionPlace> serial_order;
  Versions versions;
  int messages = 0;
  std::vector<int> link_from;      ///< link → worker that sends on it
  std::vector<int> link_capacity;  ///< link → messages it holds; 0 = any number
};

/// Validates and compiles. Throws Error{Schedule}.
Program compile(Schedule schedule);

}  // namespace pipewright
