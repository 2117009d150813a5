// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/program.h"
#include "core/drawing/render_refusal.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

/// Skip tensors that enter and leave a stage past its neighbours, in the order of its tensor list.
struct StageSkips {
  struct Side {
    Bypass bypass;  ///< its groups have no messages yet
    void add(int stage, bool gradient) {
      if (bypass.groups.empty() || bypass.groups.back().stage != stage)
        bypass.groups.push_back({.stage = stage});
      ++bypass.groups.back().count;
      bypass.groups.back().gradients |= gradient;
    }
  };
  Side in, out;
};

std::vector<StageSkips> skips_by_stage(const PipelineShape& shape) {
  std::vector<StageSkips> stages(as_size(shape.stages));
  for (const Skip& skip : shape.skips) {
    StageSkips &from = stages[as_size(skip.from)], &to = stages[as_size(skip.to)];
    if (skip.to == skip.from + 1) {
      ++from.out.bypass.behind;
      ++to.in.bypass.behind;
    } else {
      from.out.add(skip.to, skip.gradient);
      to.in.add(skip.from, skip.gradient);
    }
  }
  return stages;
}

/// Numbers messages and links and joins each producer to its consumer.
class Wiring {
 public:
  Wiring(Program& program, const PassIndex& index)
      : program_(program), index_(index), skips_(skips_by_stage(program.schedule.shape)) {}

  void connect() {
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker) place_bypass(instruction);
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker) {
        connect_input(instruction);
        connect_bypass(instruction);
      }
  }

 private:
  void place_bypass(Instruction& instruction) {
    const StageSkips& skips = skips_[as_size(instruction.action.stage)];
    if (instruction.action.kind == ActionKind::Forward) {
      instruction.bypass_received = skips.in.bypass;
      instruction.bypass_sent = skips.out.bypass;
    } else if (is_backward(instruction.action.kind)) {
      instruction.bypass_received = skips.out.bypass;
      instruction.bypass_sent = skips.in.bypass;
    }
  }

  void connect_input(Instruction& taker) {
    const Action& action = taker.action;
    const bool takes = action.kind == ActionKind::Forward || is_backward(action.kind);
    if (!takes) return;
    const ActionPlace source = index_.input_of(action);
    if (source == kNowhere) return;
    Instruction& maker = at(source);
    if (maker.action.stage == action.stage) return;  // the gradient starts at its own loss or head
    join(maker, maker.send, taker, taker.receive, program_.schedule.shape.link_capacity);
  }

  /// Joins each bypass group that `taker` receives to its sender. A loss site before the reader of
  /// a skip connection sends no gradient along it.
  void connect_bypass(Instruction& taker) {
    const bool forward = taker.action.kind == ActionKind::Forward;
    if (!forward && !is_backward(taker.action.kind)) return;
    for (Bypass::Group& group : taker.bypass_received.groups) {
      if (!forward && !group.gradients) continue;
      Action like = taker.action;
      like.stage = group.stage;
      const ActionPlace source = forward ? index_.forward(like) : index_.backward(like, like.stage);
      if (source == kNowhere) continue;
      Instruction& maker = at(source);
      join(maker, sent_to(maker, taker.action.stage), taker, group.port, 0);
    }
  }

  /// The port of the bypass message to that stage.
  static Port& sent_to(Instruction& maker, int stage) {
    return std::ranges::find(maker.bypass_sent.groups, stage, &Bypass::Group::stage)->port;
  }

  void join(Instruction& maker, Port& sent, Instruction& taker, Port& received, int capacity) {
    const PipelineShape& shape = program_.schedule.shape;
    const Action& action = taker.action;
    const int from = shape.worker_of(maker.action.stage, action.replica);
    Port port{.message = program_.messages++, .to = shape.worker_of(action.stage, action.replica)};
    if (is_backward(action.kind)) mark_input_gradient(maker);
    if (from != port.to) {
      const auto [link, fresh] =
          links_.try_emplace({maker.action.stage, action.stage, action.replica},
                             static_cast<int>(program_.link_from.size()));
      if (fresh) {
        program_.link_from.push_back(from);
        program_.link_capacity.push_back(capacity);
      }
      port.link = link->second;
    }
    sent = received = port;
  }

  /// A backward whose message somebody receives must return its inputs' gradient, so the forward
  /// must record the graph up to its inputs.
  void mark_input_gradient(Instruction& backward) {
    backward.input_gradient = true;
    at(index_.forward(backward.action)).input_gradient = true;
  }

  Instruction& at(ActionPlace place) {
    return program_.workers[as_size(place.first)][as_size(place.second)];
  }

  Program& program_;
  const PassIndex& index_;
  const std::vector<StageSkips> skips_;
  struct Link {
    int from, to, replica;
    auto operator<=>(const Link&) const = default;
  };
  std::map<Link, int> links_;
};

/// Marks forwards that a Recompute runs again: they keep their inputs only.
void mark_recomputed(Program& program, const PassIndex& index) {
  for (auto& worker : program.workers)
    for (const Instruction& instruction : worker) {
      if (instruction.action.kind != ActionKind::Recompute) continue;
      const ActionPlace forward = index.forward(instruction.action);
      program.workers[as_size(forward.first)][as_size(forward.second)].recomputed = true;
    }
}

/// Marks heads whose loss has a backward at the same stage, the last backward of each stage and
/// micro-batch, and input-only backwards that a weight-only half follows.
void mark_graph_ends(Program& program, const PassIndex& index) {
  for (auto& worker : program.workers) {
    std::map<std::pair<int, ActionPlace>, Instruction*> last;
    for (Instruction& instruction : worker) {
      const Action& action = instruction.action;
      if (action.kind == ActionKind::Head)
        instruction.input_gradient = index.backward(action, action.stage) != kNowhere;
      if (action.kind == ActionKind::BackwardInput)
        instruction.first_half = index.weight_backward(action) != kNowhere;
      if (is_backward(action.kind)) last[{action.stage, index.forward(action)}] = &instruction;
    }
    for (auto& [pass, instruction] : last) instruction->last_pass = true;
  }
}

void name_next_updates(Program& program) {
  for (auto& worker : program.workers) {
    std::map<std::pair<int, int>, const Action*> next;
    for (auto instruction = worker.rbegin(); instruction != worker.rend(); ++instruction) {
      const Action*& update = next[{instruction->action.stage, instruction->action.replica}];
      if (instruction->action.kind == ActionKind::Update) update = &instruction->action;
      if (update == nullptr) continue;
      instruction->update_minibatch = update->minibatch;
      instruction->update_scale = update->scale;
    }
  }
}

/// Moves a prediction into the update directly before it, while the weights and the optimizer's
/// state are still in the cache. No instruction lies between, so no copy is held for longer.
void predict_in_updates(Program& program) {
  for (auto& worker : program.workers)
    for (std::size_t i = 0; i + 1 < worker.size(); ++i) {
      Instruction& update = worker[i];
      Instruction& pass = worker[i + 1];
      const bool same_stage =
          update.action.stage == pass.action.stage && update.action.replica == pass.action.replica;
      if (update.action.kind != ActionKind::Update || !same_stage || !pass.weights.makes) continue;
      update.weights.key = pass.weights.key;
      update.weights.makes = std::exchange(pass.weights.makes, false);
      update.update_minibatch = pass.update_minibatch;
      update.update_scale = pass.update_scale;
    }
}

}  // namespace

int Bypass::count() const {
  int sum = 0;
  for (const Group& group : groups) sum += group.count;
  return sum;
}

std::vector<Port> sends_of(const Instruction& instruction) {
  std::vector<Port> ports;
  if (instruction.send.used()) ports.push_back(instruction.send);
  for (const Bypass::Group& group : instruction.bypass_sent.groups)
    if (group.port.used()) ports.push_back(group.port);
  return ports;
}

Program compile(Schedule schedule) {
  Program program;
  program.serial_order = validate_for_eyes(schedule);
  program.versions = resolve_versions(schedule);
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    auto& instructions = program.workers.emplace_back();
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i)
      instructions.push_back(
          {.action = schedule.workers[w][i], .weights = program.versions.workers[w][i]});
  }
  const PassIndex index(schedule);
  program.schedule = std::move(schedule);
  Wiring(program, index).connect();
  mark_recomputed(program, index);
  mark_graph_ends(program, index);
  name_next_updates(program);
  predict_in_updates(program);
  return program;
}

}  // namespace pipewright
