#include "core/runtime/program.h"

#include <map>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

bool is_backward(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::BackwardInput;
}

/// Numbers messages and links and joins each producer to its consumer.
class Wiring {
 public:
  Wiring(Program& program, const PassIndex& index) : program_(program), index_(index) {}

  void connect() {
    for (auto& worker : program_.workers)
      for (Instruction& instruction : worker) connect_input(instruction);
  }

 private:
  void connect_input(Instruction& taker) {
    const Action& action = taker.action;
    const bool takes = action.kind == ActionKind::Forward || is_backward(action.kind);
    if (!takes) return;
    const ActionPlace source = index_.input_of(action);
    if (source == kNowhere) return;
    Instruction& maker = program_.workers[as_size(source.first)][as_size(source.second)];
    if (maker.action.stage == action.stage) return;  // its own loss or head
    maker.send = taker.receive = program_.messages++;
    const PipelineShape& shape = program_.schedule.shape;
    const int from = source.first, to = shape.worker_of(action.stage, action.replica);
    maker.send_to = to;
    if (is_backward(action.kind)) mark_input_gradient(maker);
    if (from == to) return;
    const auto [link, fresh] =
        links_.try_emplace({maker.action.stage, action.stage, action.replica},
                           static_cast<int>(program_.link_from.size()));
    if (fresh) program_.link_from.push_back(from);
    maker.send_link = taker.receive_link = link->second;
  }

  /// The backward's maker must return its input's gradient, so its forward must record it.
  void mark_input_gradient(Instruction& backward) {
    backward.input_gradient = true;
    const ActionPlace forward = index_.forward(backward.action);
    program_.workers[as_size(forward.first)][as_size(forward.second)].input_gradient = true;
  }

  Program& program_;
  const PassIndex& index_;
  struct Link {
    int from, to, replica;
    auto operator<=>(const Link&) const = default;
  };
  std::map<Link, int> links_;
};

/// Head: does a backward of its loss follow at its stage? Backward: is it the micro-batch's last to
/// go through the layers? Input-only backward: is it half of one?
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

/// An update followed by a pass that predicts from what it made predicts too: the weights and the
/// optimizer's state are still in the cache. Nothing comes between, so no copy is held for longer.
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

Program compile(Schedule schedule) {
  Program program;
  program.serial_order = validate(schedule);
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
  mark_graph_ends(program, index);
  name_next_updates(program);
  predict_in_updates(program);
  return program;
}

}  // namespace pipewright
