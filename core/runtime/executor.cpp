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
#include "core/runtime/interludes.h"
#include "core/runtime/pauses.h"
#include "core/runtime/performer.h"
#include "core/runtime/trace_recorder.h"
#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Who performs what when: in one thread, in a thread for each worker, or as one worker of many
/// processes.
class Executor {
 public:
  Executor(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
           const RunRequest& request)
      : program_(program),
        stages_(stages),
        request_(request),
        cursors_(program.workers.size()),
        performed_(program.workers.size(), 0),
        own_log_(request.log != nullptr ? 0 : static_cast<int>(program.workers.size())),
        log_(request.log != nullptr ? *request.log : own_log_),
        transport_(make_transport()),
        trace_(program, request.trace),
        performer_(program, stages, request, *transport_, trace_) {}

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
    return {.losses = performer_.losses().means(),
            .metrics = performer_.losses().metrics(),
            .traffic = performer_.traffic().traffic(),
            .graphs = performer_.graphs_used()};
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
    if (request_.graphs != nullptr) own.emplace(0, devices().front());
    const Closing closing{performer_.graphs()};
    const std::int64_t end = std::min(pause.position, program_.actions);
    for (; position_ < end; ++position_) {
      performer_.begin_round(position_, end);
      const int worker = worker_at(program_, position_);
      step(worker, cursor(worker).next());
    }
    performer_.begin_round(position_, end);
    performer_.end_graph();
    for (int worker = 0; worker < static_cast<int>(program_.workers.size()); ++worker)
      finish(worker, pause);
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
    team.sum(performer_.losses().all());
    for (const std::span<double> counts :
         {performer_.traffic().all(), performer_.losses().metric_sums()})
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
      if (pause.is_end()) transport_->worker_finished();
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
                 concat(machine ? machine->message() : first_line(error), recording_hint()), where);
  }

  /// What to try if the failure may come of recording.
  const char* recording_hint() const {
    const GraphedPasses* const graphs = performer_.graphs();
    return graphs != nullptr && graphs->rounds().kind() == RoundKind::Recorded
               ? " (while passes were recorded as graphs; pipeline.cuda_graphs: false records none)"
               : "";
  }

  /// Ends the worker's updates that can end, reads its last losses and waits for its device. A late
  /// error of the device is reported as the worker's failure.
  void finish(int worker, const Pause& pause, const std::function<void()>& wait_for_device = {}) {
    try {
      performer_.finish(worker, pause);
      if (wait_for_device) wait_for_device();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw failure_at(concat("worker ", worker), error);
    }
  }

  /// Waits until the device of this process has sent its messages and finished its kernels.
  void finish_device(const Pause& pause) {
    if (pause.is_end()) transport_->worker_finished();
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
      performer_.perform(instruction, worker);
      trace_.end(worker);
      // Gradients of weights that come behind a pass are awaited outside of its time.
      if (is_pass(instruction.action.kind)) performer_.take_back(instruction, worker);
    } catch (const Error& error) {
      const bool of_worker = error.kind() == ErrorKind::Worker || error.kind() == ErrorKind::Data;
      if (!of_worker || !error.where().empty()) throw;
      throw Error(error.kind(), error.message(), performer_.where(instruction.action, worker));
    } catch (const std::exception& error) {
      throw failure_at(performer_.where(instruction.action, worker), error);
    }
  }

  const Program& program_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const RunRequest& request_;
  std::vector<std::optional<Cursor>> cursors_;  ///< [worker]
  std::vector<std::int64_t> performed_;         ///< actions of each worker, but in `serial`
  std::int64_t position_ = 0;                   ///< actions performed in `serial`
  ActionLog own_log_;
  ActionLog& log_;
  std::unique_ptr<Transport> transport_;
  TraceRecorder trace_;
  Performer performer_;
  Mutex failure_mutex_;
  std::exception_ptr failure_ PIPEWRIGHT_GUARDED_BY(failure_mutex_);
};

}  // namespace

RunResult execute(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                  const RunRequest& request) {
  return Executor(program, stages, request).run();
}

}  // namespace pipewright
