// SPDX-License-Identifier: Apache-2.0
/// A schedule compiled into instructions: messages are numbered, weight versions are resolved, and
/// the last use of every autograd graph is marked.
#pragma once

#include <vector>

#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "core/schedule/versions.h"

namespace pipewright {

/// One end of a message between two instructions.
struct Port {
  int message = -1;  ///< number of the message; −1: there is none
  int link = -1;     ///< number of the link it goes over; −1: both ends are on one worker
  int to = -1;       ///< worker that receives it
  bool used() const { return message >= 0; }
};

/// Skip tensors exchanged with stages that are not neighbours. In a pass's tensor list they are one
/// contiguous run, followed by `behind` skip tensors of the neighbour.
struct Bypass {
  struct Group {
    int stage = 0;  ///< stage at the other end
    Port port;
    int count = 0;           ///< tensors of the group
    bool gradients = false;  ///< at least one of them gets a gradient
  };
  std::vector<Group> groups;  ///< in the order of the tensor list
  int behind = 0;             ///< skip tensors of the neighbour that follow the run
  int count() const;
};

struct Instruction {
  Action action;
  /// The weights as resolved, with one exception: an Update directly before a pass that predicts
  /// from the updated version makes the prediction itself, so it has that pass's `key` and `makes`.
  ActionWeights weights;
  Port receive, send;  ///< message it receives, message it sends
  Bypass bypass_received, bypass_sent;
  bool input_gradient = false;  ///< forward: a backward will need its inputs' gradient; head or
                                ///< backward: the gradient has a receiver
  bool recomputed = false;      ///< forward: it runs a second time before its backwards
  bool last_pass = false;   ///< last backward of this stage and micro-batch (weight-only halves not
                            ///< counted): its graph may be freed
  bool first_half = false;  ///< input-only backward: its weight-only half follows
  int update_minibatch = 0;  ///< mini-batch of the stage's next update, whose learning rate
                             ///< predictions use
  double update_scale = 1;   ///< scale of the stage's next update
};

/// Ports of all messages that an instruction sends, in the order they are sent.
std::vector<Port> sends_of(const Instruction& instruction);

struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> workers;
  std::vector<ActionPlace> serial_order;
  Versions versions;
  int messages = 0;
  std::vector<int> link_from;      ///< sending worker of each link
  std::vector<int> link_capacity;  ///< messages in flight that each link holds; 0 = any number
};

/// Validates and compiles a schedule. Throws Error{Schedule}.
Program compile(Schedule schedule);

}  // namespace pipewright
