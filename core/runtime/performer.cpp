// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/performer.h"

#include <utility>

#include "core/base/as_size.h"
#include "core/runtime/interludes.h"
#include "core/runtime/observer.h"
#include "core/tensors/torch.h"

namespace pipewright {

Performer::Performer(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                     const RunRequest& request, Transport& transport, TraceRecorder& trace)
    : program_(program),
      stages_(stages),
      request_(request),
      transport_(transport),
      passes_(program, request),
      losses_(program, request, passes_),
      begun_(stages.size()),
      offloaded_(program.workers.size()),
      messages_(program, stages, request, passes_, transport, trace) {
  if (request.graphs != nullptr)
    graphs_.emplace(program, stages, request, passes_, transport, messages_.traffic());
}

void Performer::perform(const Instruction& instruction, int worker) {
  Stage& stage = stage_of(instruction.action);
  if (graphs_ && (needs_host(instruction) || begun_[index_of(instruction.action)])) end_graph();
  end_update(index_of(instruction.action), worker);
  if (is_pass(instruction.action.kind))
    offloaded_[as_size(worker)].await(forward_of(instruction.action));
  switch (instruction.action.kind) {
    case ActionKind::Forward: forward(instruction, stage, worker); break;
    case ActionKind::Head: head(instruction, stage, worker); break;
    case ActionKind::Recompute: recompute(instruction, stage); break;
    case ActionKind::Backward:
    case ActionKind::BackwardInput: backward(instruction, stage, worker); break;
    case ActionKind::BackwardWeight:
      use(instruction, stage);
      if (begin_graph()) break;
      stage.backward_weight(passes_.id(instruction.action), instruction.action.loss,
                            instruction.action.scale);
      break;
    case ActionKind::Reduce:
      messages_.take_back(instruction, worker);
      stage.prepare_sums();
      messages_.traffic().summed(
          instruction.action,
          transport_.reduce(instruction, stage, exchange_of(instruction.action), worker));
      return;
    case ActionKind::Update:
      messages_.take_back(instruction, worker);
      begin_update(instruction, stage, worker);
      return;
    case ActionKind::Offload:
      offloaded_[as_size(worker)].offload(forward_of(instruction.action));
      return;
    case ActionKind::Fetch:
      offloaded_[as_size(worker)].fetch(forward_of(instruction.action));
      return;
  }
  messages_.give(instruction);
  if (request_.observer != nullptr) show_end(instruction, stage);
  for (const WeightKey& key : instruction.weights.frees) stage.weights().free(key);
}

bool Performer::needs_host(const Instruction& instruction) const {
  const Action& action = instruction.action;
  const bool last = action.stage + 1 == program_.schedule.shape.stages;
  switch (action.kind) {
    case ActionKind::Forward:
      return action.stage == 0 || last || instruction.weights.makes ||
             request_.interludes != nullptr;
    case ActionKind::Recompute: return last || instruction.weights.makes;
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
    case ActionKind::BackwardWeight: return instruction.weights.makes;
    default: return true;
  }
}

bool Performer::begin_graph() {
  if (!graphs_) return false;
  graphs_->passes().begin();
  return graphs_->passes().launches();
}

bool Performer::begin_graph(Fetched& fetched) {
  if (!graphs_) return false;
  const bool launched = begin_graph();
  for (at::Tensor& input : fetched.inputs) input = graphs_->passes().given(input);
  for (at::Tensor* const target : {&fetched.targets.own, &fetched.targets.whole})
    *target = graphs_->passes().given(*target);
  return launched;
}

void Performer::take_back(const Instruction& instruction, int worker) {
  messages_.take_back(instruction, worker);
}

void Performer::finish(int worker, const Pause& pause) {
  end_updates_of(worker, pause);
  losses_.finish(worker);
}

void Performer::begin_round(std::int64_t position, std::int64_t end) {
  if (!graphs_ || !graphs_->is_boundary(position)) return;
  end_graph();
  graphs_->begin_round(position, end);
}

void Performer::end_graph() {
  if (!graphs_) return;
  for (const GraphedPasses::Loss& loss : graphs_->passes().end())
    losses_.record(loss.instruction, loss.worker, loss.updates, loss.value);
}

void Performer::forward(const Instruction& instruction, Stage& stage, int worker) {
  const Action& action = instruction.action;
  if (request_.interludes != nullptr) request_.interludes->before(action, stage);
  const Share share = passes_.share(action);
  const bool last = action.stage + 1 == program_.schedule.shape.stages,
             training = program_.schedule.shape.training;
  Fetched fetched;
  Tensors received;
  if (action.stage == 0)
    fetched.inputs = request_.batches.inputs(action.minibatch, share, stage.device());
  else if (!graphs_ || !graphs_->passes().launches())
    received = messages_.inputs(instruction, worker);
  if (last && training) fetched.targets = targets(action, share, stage);
  use(instruction, stage);
  if (begin_graph(fetched)) {
    if (last) record(instruction, {}, worker);
    return;
  }
  messages_.lend(instruction);
  const auto keep =
      instruction.restored_by == ActionKind::Recompute ? Stage::Keep::Inputs : Stage::Keep::Graph;
  const auto run = [&] {
    return stage.forward(passes_.id(action),
                         std::move(action.stage == 0 ? fetched.inputs : received),
                         passes_.pass(action, share), instruction.input_gradient, keep);
  };
  Tensors outputs =
      instruction.restored_by == ActionKind::Fetch
          ? offloaded_[as_size(worker)].noting(forward_of(action), stage.device().type(), run)
          : run();
  if (!last) {
    messages_.send(instruction, std::move(outputs));
    return;
  }
  if (training)
    return record(instruction, stage.final_loss(passes_.id(action), fetched.targets), worker);
  const at::Tensor wanted = request_.batches.targets(action.minibatch, share, stage.device());
  record(instruction, stage.loss_of(outputs, wanted), worker, metric_sums(outputs[0], wanted));
}

void Performer::recompute(const Instruction& instruction, Stage& stage) {
  const Action& action = instruction.action;
  const Share share = passes_.share(action);
  const bool last = action.stage + 1 == program_.schedule.shape.stages;
  Fetched fetched;
  if (last) fetched.targets = targets(action, share, stage);
  use(instruction, stage);
  if (begin_graph(fetched)) return;
  stage.recompute(passes_.id(action), passes_.pass(action, share));
  if (last) stage.final_loss(passes_.id(action), fetched.targets);
}

PassTargets Performer::targets(const Action& action, const Share& share, const Stage& stage) const {
  return {request_.batches.targets(action.minibatch, share, stage.device()),
          request_.batches.whole_targets(action.minibatch, share, stage.device(),
                                         stage.loss_is_over_minibatch())};
}

std::optional<LateValue> Performer::metric_sums(const at::Tensor& output,
                                                const at::Tensor& target) const {
  if (request_.metrics.empty()) return {};
  std::vector<at::Tensor> sums;
  for (const Metric* metric : request_.metrics) sums.push_back(metric->sums(output, target));
  return LateValue(at::cat(sums));
}

void Performer::head(const Instruction& instruction, Stage& stage, int worker) {
  const Action& action = instruction.action;
  const Share share = passes_.share(action);
  Fetched fetched{{}, targets(action, share, stage)};
  use(instruction, stage);
  if (begin_graph(fetched)) return record(instruction, {}, worker);
  const at::Tensor loss =
      stage.head(passes_.id(action), fetched.targets, passes_.pass(action, share),
                 passes_.loss_factor(share), instruction.input_gradient);
  record(instruction, loss, worker);
}

void Performer::backward(const Instruction& instruction, Stage& stage, int worker) {
  const Action& action = instruction.action;
  if (graphs_ && graphs_->passes().launches()) {
    use(instruction, stage);
    begin_graph();
    return;
  }
  Stage::BackwardRequest request{.own_loss = action.loss == action.stage,
                                 .factor = passes_.loss_factor(passes_.share(action)),
                                 .learn = action.kind == ActionKind::Backward,
                                 .scale = action.scale,
                                 .input_gradient = instruction.input_gradient,
                                 .last = instruction.last_pass};
  if (instruction.first_half) request.half_of = action.loss;
  if (!request.own_loss) {
    auto [neighbour, bypass] = messages_.gradients(instruction, worker);
    request.gradients = std::move(neighbour);
    request.bypass = std::move(bypass);
    request.behind = as_size(instruction.bypass_received.behind);
  }
  use(instruction, stage);
  begin_graph();
  if (request_.observer != nullptr) show_backward(instruction, stage, request);
  Tensors of_inputs = stage.backward(passes_.id(action), std::move(request));
  if (!of_inputs.empty()) messages_.send(instruction, std::move(of_inputs));
}

void Performer::show_end(const Instruction& instruction, Stage& stage) {
  const Share share = passes_.share(instruction.action);
  request_.observer->ended(
      instruction, stage,
      {.samples = share.samples, .factor = passes_.loss_factor(share) * instruction.action.scale});
}

void Performer::show_backward(const Instruction& instruction, Stage& stage,
                              const Stage::BackwardRequest& request) {
  const Action& action = instruction.action;
  const Share share = passes_.share(action);
  request_.observer->backward({.instruction = instruction,
                               .stage = stage,
                               .id = passes_.id(action),
                               .request = request,
                               .pass = passes_.pass(action, share),
                               .targets = [&] { return targets(action, share, stage); }});
}

void Performer::begin_update(const Instruction& instruction, Stage& stage, int worker) {
  stage.delay_gradients();
  if (graphs_) graphs_->passes().begin_update(index_of(instruction.action), stage.gradient_sums());
  if (request_.observer != nullptr) request_.observer->updates(instruction, stage);
  if (!stage.ruled_over_model()) return update(instruction, stage, worker, {});
  transport_.give_number(instruction.action, stage.square_of_gradients(instruction.weights.read));
  begun_[index_of(instruction.action)] = instruction;
}

void Performer::end_update(std::size_t index, int worker) {
  if (!begun_[index]) return;
  const Instruction begun = *std::exchange(begun_[index], {});
  update(begun, *stages_[index], worker, transport_.sum_of_numbers(begun.action, worker));
}

void Performer::end_updates_of(int worker, const Pause& pause) {
  const PipelineShape& shape = program_.schedule.shape;
  for (int replica = 0; replica < shape.replicas; ++replica)
    for (int stage = 0; stage < shape.stages; ++stage) {
      const std::size_t index = as_size(replica * shape.stages + stage);
      const bool begun_by_all =
          begun_[index] && (pause.is_end() || begun_[index]->action.minibatch < pause.updated);
      if (begun_by_all && shape.worker_of(stage, replica) == worker) end_update(index, worker);
    }
}

void Performer::update(const Instruction& instruction, Stage& stage, int worker,
                       std::optional<double> model_square) {
  const Action& action = instruction.action;
  if (request_.interludes != nullptr) request_.interludes->before(action, stage);
  stage.update(instruction.weights.in_place, request_.lr(action.minibatch) * action.scale,
               prediction(instruction),
               {.read = instruction.weights.read,
                .model_square = model_square,
                .staleness = instruction.weights.staleness});
  if (graphs_) graphs_->passes().end_update(index_of(action), stage.gradient_sums());
  for (const WeightKey& read : instruction.weights.frees) stage.weights().free(read);
  if (request_.observer != nullptr) request_.observer->updated(instruction, stage);
  if (request_.execution == Execution::Mpi && worker == 0) count_minibatch(instruction);
}

void Performer::count_minibatch(const Instruction& instruction) const {
  const int stage = program_.workers[0].front().action.stage;
  if (instruction.action.stage == stage && request_.on_minibatch)
    request_.on_minibatch(instruction.action.minibatch);
}

void Performer::use(const Instruction& instruction, Stage& stage) {
  stage.use(instruction.weights.key, prediction(instruction));
  const Action& action = instruction.action;
  if (stage.has_noise())
    stage.install(instruction.weights.key, passes_.pass(action, passes_.share(action)));
  if (request_.observer != nullptr) request_.observer->began(instruction, stage);
}

std::optional<Stage::Ahead> Performer::prediction(const Instruction& instruction) const {
  if (!instruction.weights.makes) return {};
  const auto rate = [&](int step) {
    return request_.lr(instruction.update_minibatch + step) * instruction.update_scale;
  };
  const WeightKey& key = instruction.weights.key;
  Stage::Ahead ahead{key, program_.schedule.rules[as_size(key.rule)], rate(0)};
  for (int step = 0; step < instruction.updates_ahead; ++step) ahead.rates.push_back(rate(step));
  return ahead;
}

void Performer::record(const Instruction& instruction, const at::Tensor& loss, int worker,
                       std::optional<LateValue> sums) {
  const std::int64_t updates = stage_of(instruction.action).updates() - instruction.weights.latest +
                               instruction.weights.key.version;
  if (graphs_) return graphs_->passes().keep({instruction, worker, updates, loss});
  losses_.record(instruction, worker, updates, loss, std::move(sums));
}

}  // namespace pipewright
