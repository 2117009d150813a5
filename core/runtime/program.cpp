// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/program.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/late_gradients.h"
#include "core/schedule/lent_weights.h"

namespace pipewright {
namespace {

/// Skip tensors that enter and leave a stage past its neighbours, in the order of its tensor list.
struct StageSkips {
  struct Side {
    Bypass bypass;  ///< its groups have no messages yet
    void add(int stage, const Skip& skip) {
      const bool lent = skip.lent_bytes > 0;
      if (lent || bypass.groups.empty() || bypass.groups.back().stage != stage ||
          bypass.groups.back().lent())
        bypass.groups.push_back({.stage = stage, .parameter = lent ? skip.parameter : -1});
      ++bypass.groups.back().count;
      bypass.groups.back().gradients |= skip.gradient;
    }
  };
  Side in, out;
};

std::vector<StageSkips> skips_by_stage(const PipelineShape& shape) {
  std::vector<StageSkips> stages(as_size(shape.stages));
  for (const Skip& skip : shape.skips) {
    StageSkips &from = stages[as_size(skip.from)], &to = stages[as_size(skip.to)];
    if (skip.to == skip.from + 1 && skip.lent_bytes == 0) {
      ++from.out.bypass.behind;
      ++to.in.bypass.behind;
    } else {
      from.out.add(skip.to, skip);
      to.in.add(skip.from, skip);
    }
  }
  return stages;
}

/// Calls `with` for all messages that an instruction sends, in the order they are sent.
template <class OneOf, class With>
void for_each_send(OneOf& instruction, const With& with) {
  if (instruction.send.used()) with(instruction.send);
  for (auto& group : instruction.bypass_sent.groups)
    if (group.port.used()) with(group.port);
  for (auto& group : instruction.given.groups) with(group.port);
}
template <class OneOf, class With>
void for_each_receive(OneOf& instruction, const With& with) {
  if (instruction.receive.used()) with(instruction.receive);
  for (auto& group : instruction.bypass_received.groups)
    if (group.port.used()) with(group.port);
  for (auto& group : instruction.given_back.groups) with(group.port);
}

Instruction& instruction_at(Program& program, ActionPlace place) {
  return program.workers[as_size(place.first)][as_size(place.second)];
}

/// Joins the maker of each message to its taker, and numbers links and messages.
class Wiring {
 public:
  explicit Wiring(Program& program)
      : program_(program),
        index_(program.index),
        skips_(skips_by_stage(program.schedule.shape)),
        lent_(program.schedule, program.index, program.versions),
        late_(program) {}

  void connect() {
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker) place_bypass(instruction);
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker) {
        connect_input(instruction);
        connect_bypass(instruction);
        connect_given_back(instruction);
      }
    for_each_action(program_.schedule,
                    [&](ActionPlace place, const Action&) { connect_late(place); });
    number_messages();
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
    Instruction& maker = instruction_at(program_, source);
    if (maker.action.stage == action.stage) return;  // the gradient starts at its own loss or head
    join(maker, maker.send, taker, taker.receive, program_.schedule.shape.link_capacity, false);
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
      if (group.lent() && !(forward && lent_.take(taker.action, group.stage))) continue;
      Instruction& maker = instruction_at(program_, source);
      join(maker, sent_to(maker, taker.action.stage, group.parameter), taker, group.port, 0,
           group.lent());
    }
  }

  /// Joins what adds the gradients of weights that the stage lends to those who send them.
  void connect_given_back(Instruction& taker) {
    auto& groups = taker.given_back.groups;
    for (const Loan& loan : lent_.loans()) {
      const bool lends = taker.action.stage == loan.from;
      const ActionPlace source = lends ? lent_.giver(taker.action, loan.to) : kNowhere;
      if (source == kNowhere) continue;
      groups.reserve(lent_.loans().size());  // ports stay where they are
      groups.push_back({.stage = loan.to, .count = 1, .parameter = loan.parameter});
      Instruction& maker = instruction_at(program_, source);
      join(maker, sent_to(maker, loan.from, loan.parameter), taker, groups.back().port, 0, true);
    }
  }

  /// Joins what adds gradients of copies to those who send them.
  void connect_late(ActionPlace place) {
    Instruction& taker = instruction_at(program_, place);
    auto& groups = taker.given_back.groups;
    groups.reserve(late_.taken(place).size());  // ports stay where they are
    for (const LateGradient& each : late_.taken(place)) {
      const TiedCopies& tied = program_.schedule.shape.tied[as_size(each.pair)];
      Instruction& maker = instruction_at(program_, each.pass);
      auto& given = maker.given.groups;
      given.reserve(late_.given(each.pass).size());
      given.push_back({.stage = taker.action.stage,
                       .count = 1,
                       .parameter = each.back ? tied.of_second : tied.of_first});
      groups.push_back({.stage = maker.action.stage,
                        .count = 1,
                        .parameter = each.back ? tied.of_first : tied.of_second});
      join(maker, given.back().port, taker, groups.back().port, 0, true);
    }
  }

  /// The port of the bypass message to that stage, of that parameter if it is one.
  static Port& sent_to(Instruction& maker, int stage, int parameter) {
    return std::ranges::find_if(maker.bypass_sent.groups,
                                [&](const Bypass::Group& group) {
                                  return group.stage == stage && group.parameter == parameter;
                                })
        ->port;
  }

  void join(Instruction& maker, Port& sent, Instruction& taker, Port& received, int capacity,
            bool lent) {
    const PipelineShape& shape = program_.schedule.shape;
    const Action& action = taker.action;
    const int from = shape.worker_of(maker.action.stage, action.replica),
              to = shape.worker_of(action.stage, action.replica);
    if (is_part_of_backward(action.kind)) mark_input_gradient(maker);
    const auto [link, fresh] =
        links_.try_emplace({maker.action.stage, action.stage, action.replica, lent},
                           static_cast<int>(program_.links.size()));
    if (fresh)
      program_.links.push_back({.from = from, .to = to, .capacity = from == to ? 0 : capacity});
    sent = received = {.link = link->second, .to = to, .crosses = from != to};
    ends_.emplace(&sent, &received);
  }

  /// Numbers the messages of each link in the order in which its worker sends them.
  void number_messages() {
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker)
        for_each_send(instruction, [&](Port& sent) {
          sent.turn = ends_.at(&sent)->turn = program_.links[as_size(sent.link)].messages++;
        });
  }

  /// A backward whose message somebody receives must return its inputs' gradient, so the forward
  /// must record the graph up to its inputs.
  void mark_input_gradient(Instruction& backward) {
    backward.input_gradient = true;
    instruction_at(program_, index_.forward(backward.action)).input_gradient = true;
  }

  Program& program_;
  const PassIndex& index_;
  const std::vector<StageSkips> skips_;
  const LentWeights lent_;
  const LateGradients late_;
  struct Ends {
    int from, to, replica;
    bool lent;  ///< weights have a link of their own, which no capacity bounds
    auto operator<=>(const Ends&) const = default;
  };
  std::map<Ends, int> links_;
  std::unordered_map<const Port*, Port*> ends_;  ///< sent → received
};

void name_restorers(Program& program) {
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      if (const ActionKind kind = instruction.action.kind; facts_of(kind).restores > 0)
        instruction_at(program, program.index.forward(instruction.action)).restored_by = kind;
}

/// Marks heads whose loss has a backward at the same stage, the last backward of each stage and
/// micro-batch, and input-only backwards that a weight-only half follows.
void mark_graph_ends(Program& program) {
  for (auto& worker : program.workers) {
    std::map<std::pair<int, ActionPlace>, Instruction*> last;
    for (Instruction& instruction : worker) {
      const Action& action = instruction.action;
      if (action.kind == ActionKind::Head)
        instruction.input_gradient = program.index.backward(action, action.stage) != kNowhere;
      if (action.kind == ActionKind::BackwardInput)
        instruction.first_half = program.index.weight_backward(action) != kNowhere;
      if (is_backward(action.kind))
        last[{action.stage, program.index.forward(action)}] = &instruction;
    }
    for (auto& [pass, instruction] : last) instruction->last_pass = true;
  }
}

/// Counts the gradients that come back for each message of a forward: one from each backward of its
/// stage that is sent one.
void count_gradients(Program& program) {
  for (const auto& worker : program.workers)
    for (const Instruction& backward : worker) {
      if (!is_backward(backward.action.kind)) continue;
      Instruction& forward = instruction_at(program, program.index.forward(backward.action));
      if (backward.receive.used()) ++forward.send.gradients;
      const auto& groups = backward.bypass_received.groups;
      for (std::size_t i = 0; i < groups.size(); ++i)
        if (groups[i].port.used()) ++forward.bypass_sent.groups[i].port.gradients;
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

/// Makes predictions at the rate of the stage's last update name that one, and those at the rates
/// of the updates that they stand for as many as they have steps.
void name_updates_of_predictions(Program& program) {
  for (auto& worker : program.workers) {
    std::map<std::pair<int, int>, const Action*> last;
    for (Instruction& instruction : worker) {
      const Action*& update = last[{instruction.action.stage, instruction.action.replica}];
      if (instruction.action.kind == ActionKind::Update) update = &instruction.action;
      if (!instruction.weights.makes) continue;
      const WeightKey& key = instruction.weights.key;
      const PredictionRule& rule = program.schedule.rules[as_size(key.rule)];
      if (rule.each_lr) instruction.updates_ahead = key.ahead;
      if (!rule.last_lr) continue;
      instruction.update_minibatch = update == nullptr ? -1 : update->minibatch;
      if (update != nullptr) instruction.update_scale = update->scale;
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
      update.updates_ahead = pass.updates_ahead;
      update.update_scale = pass.update_scale;
    }
}

/// Finds how many places each link needs so that no message of the serial order is sent to a place
/// that is taken. Without a loop every message has its own. With one there is room for two rounds
/// more, so that a worker that is ahead need not wait; whoever waits for a place waits for an
/// action that comes earlier in the serial order, so there is no deadlock.
void name_places(Program& program) {
  std::vector<std::set<std::int64_t>> in_flight(program.links.size());  // turns
  for (const ActionPlace& place : program.order) {
    const Instruction& instruction = instruction_at(program, place);
    for_each_receive(instruction,
                     [&](const Port& port) { in_flight[as_size(port.link)].erase(port.turn); });
    for_each_send(instruction, [&](const Port& port) {
      auto& turns = in_flight[as_size(port.link)];
      turns.insert(port.turn);
      Link& link = program.links[as_size(port.link)];
      link.places = std::max(link.places, static_cast<int>(port.turn - *turns.begin() + 1));
    });
  }
  for (Link& link : program.links)
    if (program.loop)
      link.places += 2 * link.each_round;
    else
      link.places = static_cast<int>(link.messages);
}

/// Counts what one round of the loop sends.
void count_rounds(Program& program) {
  if (!program.loop) return;
  for (std::size_t worker = 0; worker < program.workers.size(); ++worker) {
    const auto [begin, end] = program.loop->bodies[worker];
    for (std::size_t i = begin; i < end; ++i)
      for_each_send(program.workers[worker][i],
                    [&](const Port& port) { ++program.links[as_size(port.link)].each_round; });
  }
}

/// Counts the actions and messages of all rounds.
void count_whole(Program& program) {
  const int more = program.loop ? program.loop->rounds - 1 : 0;
  program.actions = std::ssize(program.order);
  if (program.loop) program.actions += more * static_cast<std::int64_t>(program.loop->order.size());
  for (Link& link : program.links) {
    link.messages += std::int64_t{more} * link.each_round;
    program.messages += link.messages;
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
  for_each_send(instruction, [&](const Port& port) { ports.push_back(port); });
  return ports;
}

Program compile(ProvedSchedule proved) {
  Program program(std::move(proved));
  const auto& all = program.schedule.workers;
  for (std::size_t w = 0; w < all.size(); ++w) {
    auto& instructions = program.workers.emplace_back();
    for (std::size_t i = 0; i < all[w].size(); ++i)
      instructions.push_back({.action = all[w][i], .weights = program.versions.workers[w][i]});
  }
  Wiring(program).connect();
  name_restorers(program);
  mark_graph_ends(program);
  count_gradients(program);
  name_next_updates(program);
  name_updates_of_predictions(program);
  predict_in_updates(program);
  count_rounds(program);
  name_places(program);
  count_whole(program);
  return program;
}

}  // namespace pipewright
