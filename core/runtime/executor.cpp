// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/runtime/cursor.h"
#include "core/runtime/devices/device_stream.h"
#include "core/runtime/devices/offloaded.h"
#include "core/runtime/graphed_loop.h"
#include "core/runtime/interludes.h"
#include "core/runtime/losses_and_metrics.h"
#include "core/runtime/messages.h"
#include "core/runtime/observer.h"
#include "core/runtime/pauses.h"
#include "core/runtime/trace_recorder.h"
#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Interpreter {
 public:
  Interpreter(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
              const RunRequest& request)
      : program_(program),
        stages_(stages),
        request_(request),
        passes_(program, request),
        losses_(program, request, passes_),
        cursors_(program.workers.size()),
        performed_(program.workers.size(), 0),
        begun_(stages.size()),
        offloaded_(program.workers.size()),
        own_log_(request.log != nullptr ? 0 : static_cast<int>(program.workers.size())),
        log_(request.log != nullptr ? *request.log : own_log_),
        transport_(make_transport()),
        trace_(program, request.trace),
        messages_(program, stages, request, passes_, *transport_, trace_) {
    if (request.graphs != nullptr)
      graphs_.emplace(program, stages, request, passes_, *transport_, messages_.traffic());
  }

  RunResult run() {
    for (const auto& stage : stages_)
      if (stage && request_.within == nullptr) stage->weights().rewind();
    if (request_.interludes != nullptr)
      for (const Pause& pause : pauses_of(program_, request_.interludes->after())) {
        run_to(pause);
        request_.interludes->pause(pause.minibatches);
      }
    run_to({.performed = std::vector(program_.workers.size(), Pause::kAll)});
    for (const TiedCopies& tied : program_.schedule.shape.tied)
      if (program_.schedule.shape.training) make_equal(tied);
    if (request_.execution == Execution::Mpi) sum_results();
    return {.losses = losses_.means(),
            .metrics = losses_.metrics(),
            .traffic = messages_.traffic().traffic(),
            .graphs = graphs_ ? graphs_->used() : GraphsUsed()};
  }

 private:
  /// Gives the later of two copies of a parameter the earlier one's values.
  void make_equal(const TiedCopies& tied) {
    const PipelineShape& shape = program_.schedule.shape;
    at::Tensor numbers = at::zeros({tied.numbers}, at::kDouble);
    if (const auto& stage = stages_[as_size(tied.first)])
      numbers.add_(stage->named_parameters()[as_size(tied.of_first)].second.flatten().to(at::kCPU));
    if (request_.execution == Execution::Mpi)
      request_.team->sum(
          {numbers.mutable_data_ptr<double>(), static_cast<std::size_t>(tied.numbers)});
    for (int replica = 0; replica < shape.replicas; ++replica)
      if (const auto& stage = stages_[as_size(replica * shape.stages + tied.second)]) {
        at::Tensor copy = stage->named_parameters()[as_size(tied.of_second)].second;
        copy.copy_(numbers.view(copy.sizes()));
      }
  }

  /// Performs what comes before the pause and has not been performed; before none, all that is
  /// left.
  void run_to(const Pause& pause) {
    switch (request_.execution) {
      case Execution::Serial: run_serial(pause); break;
      case Execution::Threads: run_threads(pause); break;
      case Execution::Mpi: run_process(pause); break;
    }
  }

  std::unique_ptr<Transport> make_transport() const {
    switch (request_.execution) {
      case Execution::Serial: return serial_transport(program_);
      case Execution::Threads:
        // While all threads wait, no message is in flight, so 8 s suffice; between processes one
        // may be.
        return queue_transport(
            program_, devices(), request_.stop,
            std::min<std::chrono::milliseconds>(request_.timeout, std::chrono::seconds(8)));
      case Execution::Mpi: return request_.team->transport(program_, own_device(), request_.within);
    }
    PIPEWRIGHT_CHECK(false, "no such execution");
  }

  /// Device of this process's worker.
  at::Device own_device() const {
    const auto own = std::ranges::find_if(stages_, [](const auto& stage) { return !!stage; });
    return own == stages_.end() ? at::Device(at::kCPU) : (*own)->device();
  }

  /// Device of each worker. Needs all stages in this process.
  std::vector<at::Device> devices() const {
    const PipelineShape& shape = program_.schedule.shape;
    std::vector<at::Device> devices(program_.workers.size(), at::kCPU);
    for (int stage = 0; stage < shape.stages; ++stage)
      for (int replica = 0; replica < shape.replicas; ++replica)
        devices[as_size(shape.worker_of(stage, replica))] =
            stages_[as_size(replica * shape.stages + stage)]->device();
    return devices;
  }

  /// Ends what an exception cuts off, before its stream goes.
  struct Closing {
    GraphedPasses* passes;
    ~Closing() {
      if (passes != nullptr) passes->abandon();
    }
  };

  void run_serial(const Pause& pause) {
    at::set_num_threads(request_.threads);
    // Graphs are not recorded on a default stream.
    std::optional<WorkerStream> own;
    if (graphs_) own.emplace(0, devices().front());
    const Closing closing{graphs_ ? &graphs_->passes() : nullptr};
    const std::int64_t end = std::min(pause.position, program_.actions);
    for (; position_ < end; ++position_) {
      begin_round(end);
      const int worker = worker_at(program_, position_);
      step(worker, cursor(worker).next());
    }
    begin_round(end);
    end_graph();
    for (int worker = 0; worker < static_cast<int>(program_.workers.size()); ++worker)
      finish(worker, pause);
  }

  /// With graphs: begins a round of the loop, or ends it, if it is time.
  void begin_round(std::int64_t end) {
    if (!graphs_ || !graphs_->is_boundary(position_)) return;
    end_graph();
    graphs_->begin_round(position_, end);
  }

  void run_threads(const Pause& pause) {
    const std::vector<at::Device> on = devices();
    std::vector<std::jthread> threads;
    int worker = 0;
    try {
      for (; worker < static_cast<int>(program_.workers.size()); ++worker)
        threads.emplace_back(
            [this, worker, &on, &pause] { run_worker(worker, on[as_size(worker)], pause); });
    } catch (const std::exception& error) {  // started workers would wait for it for ever
      fail(std::make_exception_ptr(thread_error(concat("worker ", worker), error)));
    }
    threads.clear();  // joins
    const Lock lock(failure_mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Runs this process's worker, if the program has work for it.
  void run_process(const Pause& pause) {
    at::set_num_threads(request_.threads);
    Team& team = *request_.team;
    const int worker = team.rank();
    if (worker < static_cast<int>(program_.workers.size())) {
      team.set_activity([this, worker] { return activity(worker); });
      try {
        perform_until(worker, pause);
        finish(worker, pause, [&] { finish_device(pause); });
      } catch (...) {
        team.set_activity([last = activity(worker)] { return last; });
        throw;
      }
      // The other processes name this action if the process dies before it begins another.
      team.set_activity([last = activity(worker) + " (done)"] { return last; });
    }
  }

  /// Sums the results of the team's processes.
  void sum_results() {
    Team& team = *request_.team;
    team.sum(losses_.all());
    for (const std::span<double> counts : {messages_.traffic().all(), losses_.metric_sums()})
      if (!counts.empty()) team.sum(counts);  // a single stage has no edges
    trace_.gather(team);
  }

  /// The current action of a worker, as in "stage 1, 1F7".
  std::string activity(int worker) const {
    const std::string current = log_.current(worker);
    if (!current.empty() || program_.workers[as_size(worker)].empty()) return current;
    const Action& first = program_.workers[as_size(worker)].front().action;
    return concat("stage ", first.stage, ", ",
                  action_name(first, program_.schedule.shape.microbatches), " (not begun)");
  }

  void run_worker(int worker, at::Device device, const Pause& pause) {
    at::set_num_threads(request_.threads);
    try {
      WorkerStream stream(request_.own_streams ? worker : 0, device);
      perform_until(worker, pause);
      finish(worker, pause, [&stream] { stream.finish(); });
      if (is_end(pause)) transport_->worker_finished();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  /// Keeps the first failure for run() and ends all waits.
  void fail(std::exception_ptr failure) {
    {
      const Lock lock(failure_mutex_);
      if (!failure_) failure_ = std::move(failure);
    }
    transport_->abort();
  }

  /// The Error for an exception of a library that was thrown there.
  Error failure_at(const std::string& where, const std::exception& error) const {
    const bool own_process = request_.execution == Execution::Mpi;
    const auto machine = machine_error(error, own_process ? ErrorKind::Worker : ErrorKind::Data);
    return Error(machine ? machine->kind() : ErrorKind::Worker,
                 machine ? machine->message() : first_line(error), where);
  }

  static bool is_end(const Pause& pause) { return pause.position == Pause::kAll; }

  /// Ends the worker's updates that can end, reads its last losses and waits for its device. A late
  /// error of the device is reported as the worker's failure.
  void finish(int worker, const Pause& pause, const std::function<void()>& wait_for_device = {}) {
    try {
      end_updates_of(worker, pause);
      losses_.finish(worker);
      if (wait_for_device) wait_for_device();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw failure_at(concat("worker ", worker), error);
    }
  }

  /// Waits until the device of this process has sent its messages and finished its kernels.
  void finish_device(const Pause& pause) {
    if (is_end(pause)) transport_->worker_finished();
    const at::Device own = own_device();
    if (own.is_cpu()) return;
    const c10::Event computed = recorded_on(current_stream(own));
    request_.team->wait_for_device([&] { return computed.query(); });
  }

  Cursor& cursor(int worker) {
    std::optional<Cursor>& made = cursors_[as_size(worker)];
    if (!made) made.emplace(program_, worker);
    return *made;
  }

  /// Performs the worker's actions before the pause.
  void perform_until(int worker, const Pause& pause) {
    std::int64_t& performed = performed_[as_size(worker)];
    for (Cursor& next = cursor(worker);
         !next.done() && performed < pause.performed[as_size(worker)]; ++performed)
      step(worker, next.next());
  }

  void step(int worker, const Instruction& instruction) {
    if (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed))
      throw Error(ErrorKind::Interrupted, "stopped by a signal");
    trace_.begin(worker);
    log_.begin(worker, instruction.action, program_.schedule.shape);
    try {
      perform(instruction, worker);
      trace_.end(worker);
      // Gradients of weights that come behind a pass are awaited outside of its time.
      if (is_pass(instruction.action.kind)) messages_.take_back(instruction, worker);
    } catch (const Error& error) {
      const bool of_worker = error.kind() == ErrorKind::Worker || error.kind() == ErrorKind::Data;
      if (!of_worker || !error.where().empty()) throw;
      throw Error(error.kind(), error.message(), passes_.where(instruction.action, worker));
    } catch (const std::exception& error) {
      throw failure_at(passes_.where(instruction.action, worker), error);
    }
  }

  void perform(const Instruction& instruction, int worker) {
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
            transport_->reduce(instruction, stage, exchange_of(instruction.action), worker));
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

  /// What a pass gets from the loader.
  struct Fetched {
    Tensors inputs;       ///< of the first stage
    PassTargets targets;  ///< where there is a loss
  };

  /// Whether its action has the host or the loader do something, which cannot be part of a graph.
  bool needs_host(const Instruction& instruction) const {
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

  /// A pass begins. Returns whether it is launched with a graph and must not be performed.
  bool begin_graph() {
    if (!graphs_) return false;
    graphs_->passes().begin();
    return graphs_->passes().launches();
  }
  /// The same for a pass that computes with what it gets.
  bool begin_graph(Fetched& fetched) {
    if (!graphs_) return false;
    const bool launched = begin_graph();
    for (at::Tensor& input : fetched.inputs) input = graphs_->passes().given(input);
    for (at::Tensor* const target : {&fetched.targets.own, &fetched.targets.whole})
      *target = graphs_->passes().given(*target);
    return launched;
  }
  void end_graph() {
    if (!graphs_) return;
    for (const GraphedPasses::Loss& loss : graphs_->passes().end())
      losses_.record(loss.instruction, loss.worker, loss.updates, loss.value);
  }

  void forward(const Instruction& instruction, Stage& stage, int worker) {
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

  void recompute(const Instruction& instruction, Stage& stage) {
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

  /// The targets of a pass in training.
  PassTargets targets(const Action& action, const Share& share, const Stage& stage) const {
    return {request_.batches.targets(action.minibatch, share, stage.device()),
            request_.batches.whole_targets(action.minibatch, share, stage.device(),
                                           stage.loss_is_over_minibatch())};
  }

  std::optional<LateValue> metric_sums(const at::Tensor& output, const at::Tensor& target) const {
    if (request_.metrics.empty()) return {};
    std::vector<at::Tensor> sums;
    for (const Metric* metric : request_.metrics) sums.push_back(metric->sums(output, target));
    return LateValue(at::cat(sums));
  }

  void head(const Instruction& instruction, Stage& stage, int worker) {
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

  void backward(const Instruction& instruction, Stage& stage, int worker) {
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

  void show_end(const Instruction& instruction, Stage& stage) {
    const Share share = passes_.share(instruction.action);
    request_.observer->ended(instruction, stage,
                             {.samples = share.samples,
                              .factor = passes_.loss_factor(share) * instruction.action.scale});
  }

  void show_backward(const Instruction& instruction, Stage& stage,
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

  /// Updates a stage. Where a gradient rule is over the whole model, it only publishes the squared
  /// norm of this stage's gradients. The update ends before the stage's next action: every worker
  /// has its updates before its next mini-batch, so all norms are known by then.
  void begin_update(const Instruction& instruction, Stage& stage, int worker) {
    stage.delay_gradients();
    if (graphs_)
      graphs_->passes().begin_update(index_of(instruction.action), stage.gradient_sums());
    if (!stage.ruled_over_model()) return update(instruction, stage, worker, {});
    transport_->give_number(instruction.action,
                            stage.square_of_gradients(instruction.weights.read));
    begun_[index_of(instruction.action)] = instruction;
  }

  /// Ends the update that the stage has begun, if there is one.
  void end_update(std::size_t index, int worker) {
    if (!begun_[index]) return;
    const Instruction begun = *std::exchange(begun_[index], {});
    update(begun, *stages_[index], worker, transport_->sum_of_numbers(begun.action, worker));
  }
  /// Ends the worker's updates of mini-batches that all stages have begun to update by the pause.
  void end_updates_of(int worker, const Pause& pause) {
    const PipelineShape& shape = program_.schedule.shape;
    for (int replica = 0; replica < shape.replicas; ++replica)
      for (int stage = 0; stage < shape.stages; ++stage) {
        const std::size_t index = as_size(replica * shape.stages + stage);
        const bool begun_by_all =
            begun_[index] && (is_end(pause) || begun_[index]->action.minibatch < pause.updated);
        if (begun_by_all && shape.worker_of(stage, replica) == worker) end_update(index, worker);
      }
  }

  void update(const Instruction& instruction, Stage& stage, int worker,
              std::optional<double> model_square) {
    const Action& action = instruction.action;
    if (request_.interludes != nullptr) request_.interludes->before(action, stage);
    if (request_.observer != nullptr) request_.observer->updates(instruction, stage);
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

  /// Counts mini-batches in `mpi` by worker 0's updates, because it does not see the last stage's
  /// losses.
  void count_minibatch(const Instruction& instruction) const {
    const int stage = program_.workers[0].front().action.stage;
    if (instruction.action.stage == stage && request_.on_minibatch)
      request_.on_minibatch(instruction.action.minibatch);
  }

  void use(const Instruction& instruction, Stage& stage) {
    stage.use(instruction.weights.key, prediction(instruction));
    const Action& action = instruction.action;
    if (stage.has_noise())
      stage.install(instruction.weights.key, passes_.pass(action, passes_.share(action)));
    if (request_.observer != nullptr) request_.observer->began(instruction, stage);
  }

  /// The prediction that the instruction makes, with the rates of the updates that its steps stand
  /// for, if its rule asks for them.
  std::optional<Stage::Ahead> prediction(const Instruction& instruction) const {
    if (!instruction.weights.makes) return {};
    const auto rate = [&](int step) {
      return request_.lr(instruction.update_minibatch + step) * instruction.update_scale;
    };
    const WeightKey& key = instruction.weights.key;
    Stage::Ahead ahead{key, program_.schedule.rules[as_size(key.rule)], rate(0)};
    for (int step = 0; step < instruction.updates_ahead; ++step) ahead.rates.push_back(rate(step));
    return ahead;
  }

  void record(const Instruction& instruction, const at::Tensor& loss, int worker,
              std::optional<LateValue> sums = {}) {
    const std::int64_t updates = stage_of(instruction.action).updates() -
                                 instruction.weights.latest + instruction.weights.key.version;
    if (graphs_) return graphs_->passes().keep({instruction, worker, updates, loss});
    losses_.record(instruction, worker, updates, loss, std::move(sums));
  }

  std::size_t index_of(const Action& action) const {
    return as_size(action.replica * program_.schedule.shape.stages + action.stage);
  }
  OffloadedForwards::Forward forward_of(const Action& action) const {
    return {index_of(action), passes_.id(action)};
  }
  Stage& stage_of(const Action& action) const { return *stages_[index_of(action)]; }
  GradientExchange* exchange_of(const Action& action) const {
    return request_.exchanges == nullptr ? nullptr : (*request_.exchanges)[index_of(action)].get();
  }

  const Program& program_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const RunRequest& request_;
  PassSamples passes_;
  LossesAndMetrics losses_;
  std::vector<std::optional<Cursor>> cursors_;     ///< [worker]
  std::vector<std::int64_t> performed_;            ///< actions of each worker, but in `serial`
  std::int64_t position_ = 0;                      ///< actions performed in `serial`
  std::vector<std::optional<Instruction>> begun_;  ///< updates that wait for other stages
  std::vector<OffloadedForwards> offloaded_;       ///< [worker]
  ActionLog own_log_;
  ActionLog& log_;
  std::unique_ptr<Transport> transport_;
  TraceRecorder trace_;
  Messages messages_;
  std::optional<GraphedLoop> graphs_;
  Mutex failure_mutex_;
  std::exception_ptr failure_ PIPEWRIGHT_GUARDED_BY(failure_mutex_);
};

}  // namespace

RunResult execute(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                  const RunRequest& request) {
  return Interpreter(program, stages, request).run();
}

}  // namespace pipewright
