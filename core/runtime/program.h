// SPDX-License-Identifier: Apache-2.0
/// A schedule compiled into instructions: messages are numbered, weight versions are resolved, and
/// the last use of every autograd graph is marked.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/schedule/prove.h"

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
  int gradients = 0;     ///< sent by a forward: messages with its gradient that come back
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
    /// ≥ 0: the tensor is a parameter of the stage that pushes it (lent_weights.h), or a gradient
    /// of this instruction's own stage, at that position.
    int parameter = -1;
    bool lent() const { return parameter >= 0; }
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
  /// Stages that borrow weights from this one, or that have copies of them, and whose gradients it
  /// adds when it has run, or before it sums them over replicas or updates; each group is a
  /// gradient.
  Bypass given_back;
  /// Stages that have copies, too, and are sent this one's gradients.
  Bypass given;
  bool input_gradient = false;  ///< forward: a backward will need its inputs' gradient; head or
                                ///< backward: the gradient has a receiver
  /// Forward: Recompute or Fetch, if one restores its activations before its backwards; else none.
  std::optional<ActionKind> restored_by;
  bool last_pass = false;   ///< last backward of this stage and micro-batch (weight-only halves not
                            ///< counted): its graph may be freed
  bool first_half = false;  ///< input-only backward: its weight-only half follows
  /// Mini-batch of the stage's update whose learning rate predictions use: the next one or, where
  /// this one predicts by a rule with PredictionRule::last_lr, the last (−1: one before the
  /// schedule).
  int update_minibatch = 0;
  /// Updates from that one on whose learning rates its prediction uses, one for each step
  /// (PredictionRule::each_lr); 0: only that one's.
  int updates_ahead = 0;
  double update_scale = 1;  ///< scale of that update
};

/// Ports of all messages that an instruction sends, in the order they are sent.
std::vector<Port> sends_of(const Instruction& instruction);

/// A proved schedule with what all workers perform. If it has a loop, each worker performs its body
/// as often as `loop->rounds` says; a Cursor gives the instructions of every round.
struct Program : ProvedSchedule {
  std::vector<std::vector<Instruction>> workers;
  std::vector<Link> links;
  std::int64_t actions = 0;  ///< with all rounds, as messages
  std::int64_t messages = 0;

  Program() = default;
  explicit Program(ProvedSchedule proved) : ProvedSchedule(std::move(proved)) {}
};

Program compile(ProvedSchedule proved);

}  // namespace pipewright
