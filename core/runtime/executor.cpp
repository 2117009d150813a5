#include "core/runtime/executor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/device_stream.h"
#include "core/runtime/late_value.h"
#include "core/runtime/transport.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

using Clock = std::chrono::steady_clock;

/// After every mini-batch.
constexpr int kAll = std::numeric_limits<int>::max();

/// What went wrong, without LibTorch's stack trace behind the first line.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

/// Losses as they come: each (mini-batch, site, replica) is written by one thread only.
class Losses {
 public:
  Losses(const Schedule& schedule)
      : replicas_(schedule.shape.replicas),
        sites_(1 + static_cast<int>(schedule.auxiliary.size())),
        site_of_(as_size(schedule.shape.stages), -1),
        sums_(as_size(schedule.shape.minibatches * sites_ * replicas_), 0) {
    site_of_.back() = 0;
    for (std::size_t i = 0; i < schedule.auxiliary.size(); ++i)
      site_of_[as_size(schedule.auxiliary[i])] = static_cast<int>(i) + 1;
  }

  void add(const Action& action, double loss, const Share& share) {
    const int site = site_of_[as_size(action.stage)];
    const double weight =
        static_cast<double>(share.samples) / static_cast<double>(share.all_samples);
    sums_[as_size((action.minibatch * sites_ + site) * replicas_ + action.replica)] +=
        loss * weight;
  }

  std::span<double> all() { return sums_; }

  std::vector<std::vector<double>> sums(int minibatches) const {
    std::vector<std::vector<double>> all(as_size(minibatches),
                                         std::vector<double>(as_size(sites_), 0));
    for (int m = 0; m < minibatches; ++m)
      for (int site = 0; site < sites_; ++site)
        for (int r = 0; r < replicas_; ++r)
          all[as_size(m)][as_size(site)] += sums_[as_size((m * sites_ + site) * replicas_ + r)];
    return all;
  }

 private:
  int replicas_, sites_;
  std::vector<int> site_of_;
  std::vector<double> sums_;
};

/// A loss that is on its way to the host, and what is to be said of it.
struct Reading {
  const Instruction* instruction;
  Share share;
  std::int64_t updates;  ///< of its stage before the weights it was computed with
  LateValue loss;
  std::optional<LateValue> sums;  ///< of the metrics, one after another
};

std::size_t sums_of(const std::vector<const Metric*>& metrics) {
  std::size_t sum = 0;
  for (const Metric* metric : metrics) sum += metric->size();
  return sum;
}

class Interpreter {
 public:
  Interpreter(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
              const RunRequest& request)
      : program_(program),
        stages_(stages),
        request_(request),
        losses_(program.schedule),
        traffic_(program.schedule.shape),
        readings_(program.workers.size()),
        metric_sums_(sums_of(request.metrics), 0),
        own_log_(request.log != nullptr ? 0 : static_cast<int>(program.workers.size())),
        log_(request.log != nullptr ? *request.log : own_log_),
        transport_(make_transport()) {}

  RunResult run() {
    for (const auto& stage : stages_)
      if (stage) stage->weights().rewind();
    if (request_.trace != nullptr) {
      request_.trace->clear();
      for (const auto& worker : program_.workers) request_.trace->emplace_back(worker.size());
    }
    switch (request_.execution) {
      case Execution::Serial: run_serial(); break;
      case Execution::Threads: run_threads(); break;
      case Execution::Mpi: run_process(); break;
    }
    RunResult result{.losses = losses_.sums(program_.schedule.shape.minibatches)};
    std::span<const double> rest = metric_sums_;
    for (const Metric* metric : request_.metrics) {
      result.metrics.push_back(metric->value(rest.first(metric->size())));
      rest = rest.subspan(metric->size());
    }
    result.traffic = traffic_.traffic();
    return result;
  }

 private:
  std::unique_ptr<Transport> make_transport() const {
    switch (request_.execution) {
      case Execution::Serial: return serial_transport(program_);
      case Execution::Threads: return queue_transport(program_, devices(), request_.stop);
      case Execution::Mpi: return request_.team->transport(program_, own_device());
    }
    PIPEWRIGHT_CHECK(false, "no such execution");
  }

  /// Of this process's worker.
  at::Device own_device() const {
    const auto own = std::ranges::find_if(stages_, [](const auto& stage) { return !!stage; });
    return own == stages_.end() ? at::Device(at::kCPU) : (*own)->device();
  }

  /// Of each worker, where all stages are here.
  std::vector<at::Device> devices() const {
    const PipelineShape& shape = program_.schedule.shape;
    std::vector<at::Device> devices(program_.workers.size(), at::kCPU);
    for (int stage = 0; stage < shape.stages; ++stage)
      for (int replica = 0; replica < shape.replicas; ++replica)
        devices[as_size(shape.worker_of(stage, replica))] =
            stages_[as_size(replica * shape.stages + stage)]->device();
    return devices;
  }

  void run_serial() {
    at::set_num_threads(request_.threads);
    for (const auto& [worker, position] : program_.serial_order) step(worker, position);
    for (int worker = 0; worker < static_cast<int>(program_.workers.size()); ++worker)
      finish(worker);
  }

  void run_threads() {
    const std::vector<at::Device> on = devices();
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < static_cast<int>(program_.workers.size()); ++worker)
      threads.emplace_back([this, worker, &on] { run_worker(worker, on[as_size(worker)]); });
    threads.clear();  // joins
    if (failure_) std::rethrow_exception(failure_);
  }

  /// This process's worker, if the program has work for it; then the team's results.
  void run_process() {
    at::set_num_threads(request_.threads);
    Team& team = *request_.team;
    const int worker = team.rank();
    if (worker < static_cast<int>(program_.workers.size())) {
      team.set_activity([this, worker] { return log_.current(worker); });
      try {
        for (int i = 0; i < static_cast<int>(program_.workers[as_size(worker)].size()); ++i)
          step(worker, i);
        finish(worker, [this] { finish_device(); });
      } catch (...) {
        team.set_activity({});
        throw;
      }
      team.set_activity({});
    }
    team.sum(losses_.all());
    if (!traffic_.all().empty()) team.sum(traffic_.all());  // one stage has no edges
    if (!metric_sums_.empty()) team.sum(metric_sums_);
    if (request_.trace != nullptr) gather_trace();
  }

  void gather_trace() {
    auto& trace = *request_.trace;
    std::string own;
    if (as_size(request_.team->rank()) < trace.size()) {
      const auto& spans = trace[as_size(request_.team->rank())];
      own.assign(reinterpret_cast<const char*>(spans.data()), spans.size() * sizeof(Span));
    }
    const auto all = request_.team->gather(std::move(own));
    for (std::size_t worker = 0; worker < std::min(all.size(), trace.size()); ++worker)
      std::memcpy(trace[worker].data(), all[worker].data(),
                  std::min(all[worker].size(), trace[worker].size() * sizeof(Span)));
  }

  void run_worker(int worker, at::Device device) {
    at::set_num_threads(request_.threads);
    try {
      WorkerStream stream(request_.own_streams ? worker : 0, device);
      for (int i = 0; i < static_cast<int>(program_.workers[as_size(worker)].size()); ++i)
        step(worker, i);
      finish(worker, [&stream] { stream.finish(); });
      transport_->leave();
    } catch (...) {
      {
        const std::lock_guard lock(failure_mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      transport_->abort();
    }
  }

  /// What a device reports only at the end is the worker's failure like any other.
  void finish(int worker, const std::function<void()>& wait_for_device = {}) {
    try {
      read_losses(worker);
      if (wait_for_device) wait_for_device();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorKind::Worker, first_line(error), concat("worker ", worker));
    }
  }

  /// Of a process: what it sends and what it computes.
  void finish_device() {
    transport_->leave();
    const at::Device own = own_device();
    if (own.is_cpu()) return;
    const c10::Event computed = recorded_on(current_stream(own));
    request_.team->wait_for_device([&] { return computed.query(); });
  }

  void step(int worker, int position) {
    const Instruction& instruction = program_.workers[as_size(worker)][as_size(position)];
    if (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed))
      throw Error(ErrorKind::Interrupted, "stopped by a signal");
    const bool traced = request_.trace != nullptr;
    const double begin = traced ? seconds() : 0;
    log_.begin(worker, instruction.action, program_.schedule.shape);
    try {
      perform(instruction, worker);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Worker || !error.where().empty()) throw;
      throw Error(error.kind(), error.message(), place(instruction, worker));
    } catch (const std::exception& error) {
      throw Error(ErrorKind::Worker, first_line(error), place(instruction, worker));
    }
    if (traced) (*request_.trace)[as_size(worker)][as_size(position)] = {begin, seconds()};
  }

  void perform(const Instruction& instruction, int worker) {
    Stage& stage = stage_of(instruction.action);
    switch (instruction.action.kind) {
      case ActionKind::Forward: forward(instruction, stage, worker); break;
      case ActionKind::Head: head(instruction, stage, worker); break;
      case ActionKind::Recompute: recompute(instruction, stage); break;
      case ActionKind::Backward:
      case ActionKind::BackwardInput: backward(instruction, stage, worker); break;
      case ActionKind::BackwardWeight:
        use(instruction, stage);
        stage.backward_weight(id(instruction.action), instruction.action.loss,
                              instruction.action.scale);
        break;
      case ActionKind::Reduce:
        traffic_.summed(instruction.action,
                        transport_->reduce(instruction, stage,
                                           own(request_.exchanges, instruction.action), worker));
        return;
      case ActionKind::Update: update(instruction, stage, worker); return;
    }
    for (const WeightKey& key : instruction.weights.frees) stage.weights().free(key);
  }

  void forward(const Instruction& instruction, Stage& stage, int worker) {
    const Action& action = instruction.action;
    const Share share = share_of(action);
    Tensors inputs = action.stage == 0
                         ? request_.batches.inputs(action.minibatch, share, stage.device())
                         : receive_inputs(instruction, worker);
    use(instruction, stage);
    Tensors outputs = stage.forward(
        id(action), std::move(inputs), pass(action, share), instruction.input_gradient,
        instruction.recomputed ? Stage::Keep::Inputs : Stage::Keep::Graph);
    if (action.stage + 1 < program_.schedule.shape.stages) {
      send(instruction, std::move(outputs));
      return;
    }
    const at::Tensor targets = request_.batches.targets(action.minibatch, share, stage.device());
    if (program_.schedule.shape.training) {
      record(instruction, stage.final_loss(id(action), targets), share, worker);
      return;
    }
    record(instruction, stage.loss_of(outputs, targets), share, worker,
           metric_sums(outputs[0], targets));
  }

  void recompute(const Instruction& instruction, Stage& stage) {
    const Action& action = instruction.action;
    const Share share = share_of(action);
    use(instruction, stage);
    stage.recompute(id(action), pass(action, share));
    if (action.stage == program_.schedule.shape.stages - 1)
      stage.final_loss(id(action),
                       request_.batches.targets(action.minibatch, share, stage.device()));
  }

  std::optional<LateValue> metric_sums(const at::Tensor& output, const at::Tensor& target) const {
    if (request_.metrics.empty()) return {};
    std::vector<at::Tensor> sums;
    for (const Metric* metric : request_.metrics) sums.push_back(metric->sums(output, target));
    return LateValue(at::cat(sums));
  }

  void head(const Instruction& instruction, Stage& stage, int worker) {
    const Action& action = instruction.action;
    const Share share = share_of(action);
    const at::Tensor targets = request_.batches.targets(action.minibatch, share, stage.device());
    use(instruction, stage);
    const at::Tensor loss = stage.head(id(action), targets, pass(action, share), factor(share),
                                       instruction.input_gradient);
    record(instruction, loss, share, worker);
  }

  void backward(const Instruction& instruction, Stage& stage, int worker) {
    const Action& action = instruction.action;
    Stage::BackwardRequest request{.own_loss = action.loss == action.stage,
                                   .factor = factor(share_of(action)),
                                   .learn = action.kind == ActionKind::Backward,
                                   .scale = action.scale,
                                   .input_gradient = instruction.input_gradient,
                                   .last = instruction.last_pass};
    if (instruction.first_half) request.half_of = action.loss;
    if (!request.own_loss) {
      request.gradients = receive(instruction, instruction.receive, action.stage + 1, worker);
      request.straight = receive_straight(instruction, worker);
      request.behind = as_size(instruction.straight_received.behind);
    }
    use(instruction, stage);
    Tensors of_inputs = stage.backward(id(action), std::move(request));
    if (!of_inputs.empty()) send(instruction, std::move(of_inputs));
  }

  /// In the order of the stage's layers: what was put aside first stands first.
  Tensors receive_inputs(const Instruction& instruction, int worker) {
    Tensors inputs =
        receive(instruction, instruction.receive, instruction.action.stage - 1, worker);
    const Straight& straight = instruction.straight_received;
    if (straight.groups.empty()) return inputs;
    const Tensors skipped = receive_straight(instruction, worker);
    inputs.insert(inputs.end() - straight.behind, skipped.begin(), skipped.end());
    return inputs;
  }

  /// One after another; undefined where nothing comes.
  Tensors receive_straight(const Instruction& instruction, int worker) {
    Tensors all;
    for (const auto& [peer, port, count] : instruction.straight_received.groups) {
      Tensors group(as_size(count));
      if (port.used()) group = receive(instruction, port, peer, worker);
      all.append(group.begin(), group.end());
    }
    return all;
  }

  /// A pass's outputs, or its inputs' gradients: to the neighbour what there is, but for what goes
  /// straight to stages beyond it.
  void send(const Instruction& instruction, Tensors tensors) {
    const Action& action = instruction.action;
    const int neighbour = action.stage + (action.kind == ActionKind::Forward ? 1 : -1);
    Tensors skipping = take_straight(instruction.straight_sent, tensors);
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [](const at::Tensor& tensor) { return !tensor.defined(); }),
                  tensors.end());
    if (instruction.send.used()) send(instruction, instruction.send, neighbour, std::move(tensors));
    auto next = std::make_move_iterator(skipping.begin());
    for (const auto& [peer, port, count] : instruction.straight_sent.groups) {
      Tensors group(next, next + count);
      next += count;
      if (port.used()) send(instruction, port, peer, std::move(group));
    }
  }

  /// Out of a pass's tensors, what does not go to the neighbour.
  static Tensors take_straight(const Straight& straight, Tensors& tensors) {
    if (straight.groups.empty()) return {};
    const auto last = tensors.end() - straight.behind, first = last - straight.count();
    Tensors skipping(std::make_move_iterator(first), std::make_move_iterator(last));
    for (at::Tensor& tensor : skipping)
      if (!tensor.defined()) tensor = at::empty({0});  // of integers: keeps the others' places
    tensors.erase(first, last);
    return skipping;
  }

  void send(const Instruction& instruction, const Port& port, int peer, Tensors message) {
    const Action& action = instruction.action;
    const std::size_t values = bytes_of(message);
    std::size_t crossing = values;
    double coding = 0;
    if (EdgeEnds* const ends = ends_of(action)) {
      const CodecCall call = codec_call(action);
      if (ends->compresses(peer, call)) {
        coding -= seconds();
        ends->encode(message, peer, call);
        coding += seconds();
        crossing = bytes_of(message);
      }
    }
    traffic_.sent(action.stage, peer, action.replica, values, crossing, coding);
    transport_->send(port, std::move(message));
  }

  Tensors receive(const Instruction& instruction, const Port& port, int peer, int worker) {
    const Action& action = instruction.action;
    const at::Device device = stage_of(action).device();
    Tensors message = transport_->receive(port, worker);
    for (at::Tensor& tensor : message)
      if (tensor.device() != device) tensor = tensor.to(device);
    EdgeEnds* const ends = ends_of(action);
    if (ends == nullptr) return message;
    const CodecCall call = codec_call(action);
    if (!ends->compresses(peer, call)) return message;
    const double begin = seconds();
    ends->decode(message, peer, call);
    traffic_.received(peer, action.stage, action.replica, seconds() - begin);
    return message;
  }

  static std::size_t bytes_of(const Tensors& message) {
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : message) bytes += tensor.nbytes();
    return bytes;
  }

  /// That of the action's stage replica, if there are any.
  template <class Part>
  Part* own(const std::vector<std::unique_ptr<Part>>* parts, const Action& action) const {
    return parts == nullptr ? nullptr : (*parts)[place_of(action)].get();
  }
  EdgeEnds* ends_of(const Action& action) const { return own(request_.edges, action); }

  CodecCall codec_call(const Action& action) const {
    const Share share = share_of(action);
    const Pass now = pass(action, share);
    return {.seed = now.seed,
            .training = now.training,
            .backward = action.kind != ActionKind::Forward,
            .epoch = now.epoch,
            .minibatch = now.minibatch,
            .first_sample = now.first_sample,
            .samples = request_.batches.samples(action.minibatch, share)};
  }

  void update(const Instruction& instruction, Stage& stage, int worker) {
    const Action& action = instruction.action;
    const WeightKey& key = instruction.weights.key;
    std::optional<Stage::Ahead> ahead;
    if (instruction.weights.makes)
      ahead = {key, program_.schedule.rules[as_size(key.rule)], next_lr(instruction)};
    stage.update(instruction.weights.in_place, request_.lr(action.minibatch) * action.scale, ahead);
    if (request_.execution == Execution::Mpi && worker == 0) count_minibatch(instruction);
  }

  /// A process does not see the last stage's losses: worker 0's updates stand for them.
  void count_minibatch(const Instruction& instruction) const {
    const int stage = program_.workers[0].front().action.stage;
    if (instruction.action.stage == stage && request_.on_minibatch)
      request_.on_minibatch(instruction.action.minibatch);
  }

  void use(const Instruction& instruction, Stage& stage) {
    stage.use(instruction.weights, program_.schedule.rules,
              instruction.weights.makes ? next_lr(instruction) : 0);
  }

  /// Of the update that a prediction aims at.
  double next_lr(const Instruction& instruction) const {
    return request_.lr(instruction.update_minibatch) * instruction.update_scale;
  }

  /// On a CPU a loss is read at once; on another device when the worker comes to one of the next
  /// mini-batch, or to its end, so that the device always has work queued meanwhile.
  void record(const Instruction& instruction, const at::Tensor& loss, const Share& share,
              int worker, std::optional<LateValue> sums = {}) {
    const std::int64_t updates = stage_of(instruction.action).optimizer_state().steps -
                                 instruction.weights.latest + instruction.weights.key.version;
    readings_[as_size(worker)].push_back(
        {&instruction, share, updates, LateValue(loss), std::move(sums)});
    read_losses(worker, loss.is_cpu() ? kAll : instruction.action.minibatch);
  }

  /// Those of mini-batches before that one.
  void read_losses(int worker, int minibatch = kAll) {
    std::deque<Reading>& readings = readings_[as_size(worker)];
    for (; !readings.empty() && readings.front().instruction->action.minibatch < minibatch;
         readings.pop_front())
      account(readings.front(), worker);
  }

  void account(const Reading& reading, int worker) {
    const auto& [instruction_of, share, updates, late_loss, sums] = reading;
    const Instruction& instruction = *instruction_of;
    const Action& action = instruction.action;
    const auto loss = value_of(late_loss).item<double>();
    if (sums) {
      const at::Tensor& added = value_of(*sums);
      for (std::size_t i = 0; i < metric_sums_.size(); ++i)
        metric_sums_[i] += added.const_data_ptr<double>()[i];
    }
    if (!std::isfinite(loss)) {
      const WeightKey& key = instruction.weights.key;
      throw Error(
          ErrorKind::NotFinite,
          concat("the loss of mini-batch ", pass(action, share).minibatch, " of epoch ",
                 pass(action, share).epoch, " at stage ", action.stage, " is ", loss,
                 "; its weights are version ", updates,
                 key.ahead == 0 ? std::string() : concat(", predicted ", key.ahead, " ahead"),
                 "; try a smaller optimizer.lr"),
          place(instruction, worker));
    }
    losses_.add(action, loss, share);
    const bool complete = action.stage == program_.schedule.shape.stages - 1 &&
                          action.microbatch == program_.schedule.shape.microbatches - 1 &&
                          action.replica == 0 && request_.execution != Execution::Mpi;
    if (complete && request_.on_minibatch) request_.on_minibatch(action.minibatch);
  }

  /// A process asks for it again and again, so that it hears of failures elsewhere.
  const at::Tensor& value_of(const LateValue& late) const {
    if (request_.execution == Execution::Mpi && !late.is_there())
      request_.team->wait_for_device([&] { return late.is_there(); });
    return late.read();
  }

  Share share_of(const Action& action) const {
    return request_.batches.share(action.minibatch, action.replica, action.microbatch);
  }

  /// Weight of a micro-batch's mean loss in the gradient: by samples of the mini-batch, or, summed
  /// over micro-batches, of the replica's share.
  double factor(const Share& share) const {
    const std::int64_t part = request_.sum_gradients ? share.replica_samples : share.samples;
    return static_cast<double>(part) / static_cast<double>(share.all_samples);
  }

  Pass pass(const Action& action, const Share& share) const {
    const int position = request_.first_minibatch + action.minibatch;
    return {.training = program_.schedule.shape.training,
            .seed = request_.seed,
            .epoch = request_.first_epoch + position / request_.minibatches_per_epoch,
            .minibatch = position % request_.minibatches_per_epoch,
            .first_sample = share.first_sample,
            .microbatches = program_.schedule.shape.microbatches};
  }

  std::size_t place_of(const Action& action) const {
    return as_size(action.replica * program_.schedule.shape.stages + action.stage);
  }
  Stage& stage_of(const Action& action) const { return *stages_[place_of(action)]; }
  int id(const Action& action) const {
    return action.minibatch * program_.schedule.shape.microbatches + action.microbatch;
  }
  std::string place(const Instruction& instruction, int worker) const {
    return concat("worker ", worker, ", stage ", instruction.action.stage, ", ",
                  action_name(instruction.action, program_.schedule.shape.microbatches));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  const Program& program_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const RunRequest& request_;
  Losses losses_;
  TrafficCount traffic_;
  std::vector<std::deque<Reading>> readings_;  ///< per worker
  std::vector<double> metric_sums_;            ///< an evaluation has one last stage
  ActionLog own_log_;
  ActionLog& log_;
  std::unique_ptr<Transport> transport_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

RunResult execute(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                  const RunRequest& request) {
  return Interpreter(program, stages, request).run();
}

}  // namespace pipewright
