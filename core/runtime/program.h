// SPDX-License-Identifier: Apache-2.0
/// A schedule compiled into instructions: messages are numbered, weight versions are resolved, and
/// the last use of every autograd graph is marked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule/loop.h"
#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"
#include "core/schedule/versions.h"

namespace pipewright {

/// A link carries messages in one direction between two stages of one replica, which may be on one
/// worker. Its messages are numbered by their turn: in the order in which they are sent.
struct Link {
  int from = 0, to = 0;       ///< workers
  int capacity = 0;           ///< messages in flight that it holds; 0: any number
  std::int64_t messages = 0;  ///< that go over it in the whole program
  /// Messages in flight that need a place in memory; that of turn t takes place t mod `places`.
  int places = 0;
  int each_round = 0;  ///< messages of one round of the program's loop
};

/// One end of a message between two instructions.
struct Port {
  int link = -1;  ///< number of the link it goes over; −1: there is no message
  std::int64_t turn = 0;
  int to = -1;           ///< worker that receives it
  bool crosses = false;  ///< between two workers
  bool used() const { return link >= 0; }
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
  bool offloaded = false;       ///< forward: what it keeps is moved to the host; pass: a fetch has
                                ///< brought that back since
  bool last_pass = false;   ///< last backward of this stage and micro-batch (weight-only halves not
                            ///< counted): its graph may be freed
  bool first_half = false;  ///< input-only backward: its weight-only half follows
  /// Mini-batch of the stage's update whose learning rate predictions use: the next one or, where
  /// this one predicts by a rule with PredictionRule::last_lr, the last (−1: one before the
  /// schedule).
  int update_minibatch = 0;
  double update_scale = 1;  ///< scale of that update
};

/// Ports of all messages that an instruction sends, in the order they are sent.
std::vector<Port> sends_of(const Instruction& instruction);

/// What all workers perform. If it has a loop, each worker performs its body as often as
/// `loop->rounds` says; a Cursor gives the instructions of every round.
struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> workers;
  std::vector<ActionPlace> serial_order;
  Versions versions;
  std::vector<Link> links;
  std::optional<Loop> loop;
  int minibatches = 0;  ///< with all rounds, as the following
  std::int64_t actions = 0;
  std::int64_t messages = 0;
};

/// Compiles a schedule that has been proved.
Program compile(ProvedSchedule proved);
/// Proves and compiles a schedule. Throws Error{Schedule}, with a drawing.
Program compile(Schedule schedule);

}  // namespace pipewright
