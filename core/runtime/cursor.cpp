// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cursor.h"

#include "core/base/as_size.h"

namespace pipewright {
namespace {

void move_on(Port& port, const Program& program, int rounds) {
  if (port.used()) port.turn += std::int64_t{rounds} * program.links[as_size(port.link)].each_round;
}

void move_on(Bypass& bypass, const Program& program, int rounds) {
  for (Bypass::Group& group : bypass.groups) move_on(group.port, program, rounds);
}

/// Makes of an instruction the one that is `rounds` rounds later.
void move_on(Instruction& instruction, const Program& program, int rounds) {
  const PipelineShape& shape = program.schedule.shape;
  const Step& step = program.loop->step;
  const Action& action = instruction.action;
  const int updates = rounds * step.updates[as_size(action.replica * shape.stages + action.stage)];
  instruction.action = later(action, step, shape.stages, rounds);
  if (shape.training) instruction.update_minibatch += rounds * step.minibatches;
  ActionWeights& weights = instruction.weights;
  weights.latest += updates;
  if (is_pass(action.kind) || weights.makes) weights.key.version += updates;
  if (weights.read) weights.read->version += updates;
  for (WeightKey& key : weights.frees) key.version += updates;
  move_on(instruction.receive, program, rounds);
  move_on(instruction.send, program, rounds);
  move_on(instruction.bypass_received, program, rounds);
  move_on(instruction.bypass_sent, program, rounds);
  move_on(instruction.given_back, program, rounds);
}

}  // namespace

Cursor::Cursor(const Program& program, int worker)
    : program_(program),
      given_(program.workers[as_size(worker)]),
      loop_(program.loop ? &*program.loop : nullptr) {
  if (loop_ == nullptr) return;
  body_ = loop_->bodies[as_size(worker)];
  own_ = given_;
  for (std::size_t i = body_.end; i < own_.size(); ++i)
    move_on(own_[i], program, loop_->rounds - 1);
}

const Instruction& Cursor::next() {
  if (loop_ != nullptr && next_ == body_.end && round_ + 1 < loop_->rounds) {
    ++round_;
    next_ = body_.begin;
    for (std::size_t i = body_.begin; i < body_.end; ++i) move_on(own_[i], program_, 1);
  }
  return instructions()[next_++];
}

}  // namespace pipewright
