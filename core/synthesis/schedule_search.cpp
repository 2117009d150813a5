// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/schedule_search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/synthesis/exact_bound.h"
#include "core/synthesis/list_orders.h"

namespace pipewright {
namespace {

class ScheduleSearch {
 public:
  ScheduleSearch(const PipelineShape& shape, std::span<const StageCost> costs,
                 const Hardware& hardware, const ScheduleLimits& limits,
                 const SynthesisSettings& settings)
      : shape_(shape),
        costs_(costs),
        hardware_(hardware),
        limits_(limits),
        settings_(settings),
        whole_may_be_faster_(whole_backwards_may_be_faster(costs)) {
    PIPEWRIGHT_CHECK(shape.replicas == 1, "a search is for one replica");
  }

  PaceBound bound() const { return pace_bound(least()); }

  SearchedSchedule run() {
    refuse_too_much();
    refuse_too_little();
    for_each_built_in(shape_, [&](const std::string& name, const ProvedSchedule& proved) {
      try_built_in(name, proved);
      for (const bool split : {true, false})
        if (limits_.staleness == 0 && (split || whole_may_be_faster_))
          candidates_[split].push_back({name, orders_of(proved.schedule, split)});
      return !is_over();
    });
    best_.bound = bound();
    if (!is_over()) {
      const PaceBound split = search(task(true));
      if (!whole_may_be_faster_) best_.bound = split;  // else it is no bound of whole backwards
    }
    if (whole_may_be_faster_ && !is_over()) {
      search(task(false));
      best_.bound = raised(bound());
    }
    if (!best_.proved && stop_) throw Error(*stop_);
    if (!best_.proved) refuse_memory();
    if (best_.bound.in_turn && overlaps(best_.proved->schedule))
      best_.bound = pace_bound_of_any(least());
    PIPEWRIGHT_CHECK(best_.pace.seconds >= best_.bound.seconds * (1 - kSumRounding),
                     "a schedule is faster than what is proved of all schedules");
    best_.bound.seconds = std::min(best_.bound.seconds, best_.pace.seconds);  // but for rounding
    return std::move(best_);
  }

 private:
  /// Whether a worker begins a mini-batch before it has ended the one before.
  static bool overlaps(const Schedule& schedule) {
    return std::ranges::any_of(schedule.workers, [](const std::vector<Action>& actions) {
      return !std::ranges::is_sorted(actions, {}, &Action::minibatch);
    });
  }

  /// That of schedules with both kinds of backwards.
  OrderTask least() const {
    return whole_may_be_faster_ ? least_task(task(true), task(false)) : task(true);
  }

  /// The bound of least(), raised if the pipeline is so small that all orders can be looked at.
  PaceBound raised(const PaceBound& bound) const {
    if (!best_.proved || gap_of(best_.pace.seconds, bound.seconds) == 0) return bound;
    const PaceBound exact = exact_bound(
        least(),
        {.below = best_.pace.seconds, .most_steps = settings_.exact_steps, .stop = settings_.stop});
    return exact.seconds > bound.seconds ? exact : bound;
  }

  /// Whether time is up and there is a schedule to return.
  bool is_over() const { return best_.proved && settings_.stop && settings_.stop(); }

  bool counts_bytes() const { return !limits_.memory.empty(); }
  double memory_of(int worker) const {
    const std::int64_t bytes = limits_.memory[as_size(worker)];
    return bytes == 0 ? kUnlimited : static_cast<double>(bytes);
  }

  /// Bytes that a worker holds in any schedule.
  double always_held(int worker) const {
    auto bytes = static_cast<double>(limits_.fixed);
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const StageCost& cost = costs_[as_size(stage)];
      if (shape_.worker_of(stage, 0) == worker)
        bytes += static_cast<double>(cost.version_bytes() + cost.buffer_bytes) +
                 static_cast<double>(cost.parameter_bytes) * limits_.optimizer_state +
                 (limits_.optimizer_tables.empty()
                      ? 0.0
                      : static_cast<double>(limits_.optimizer_tables[as_size(stage)]));
    }
    return bytes;
  }

  OrderTask task(bool split) const {
    OrderTask task = order_task(shape_, costs_, hardware_, split);
    task.staleness = limits_.staleness;
    if (limits_.staleness > 0) task.minibatches = shape_.minibatches;
    for (double& room : task.room) room = limits_.live;
    if (!counts_bytes()) return task;
    for (int stage = 0; stage < shape_.stages; ++stage)
      task.held[as_size(stage)] = static_cast<double>(costs_[as_size(stage)].activation_bytes +
                                                      costs_[as_size(stage)].input_bytes);
    for (int worker = 0; worker < task.workers; ++worker)
      task.room[as_size(worker)] = memory_of(worker) - always_held(worker);
    return task;
  }

  /// The clock of orders has a time for each pass and worker.
  void refuse_too_much() const {
    constexpr double kMostTimes = 1e8;
    const double times = 2.0 * shape_.stages * shape_.microbatches * shape_.workers();
    if (limits_.staleness == 0 && times > kMostTimes)
      refuse(concat("a search for ", counted(shape_.stages, "stage"), ", ",
                    counted(shape_.microbatches, "micro-batch"), " and ",
                    counted(shape_.workers(), "worker"),
                    " is too large: their product is above 50 million; expected fewer"));
  }

  void refuse_too_little() const {
    const OrderTask whole = task(true);
    for (int worker = 0; worker < whole.workers; ++worker) {
      const double needed = needed_by_one(whole, worker);
      if (needed <= whole.room[as_size(worker)] * (1 + kSumRounding)) continue;
      if (counts_bytes())
        refuse(concat("worker ", worker, " may hold ", bytes_text(memory_of(worker)),
                      "; its weights, the optimizer's state and the activations of one micro-batch "
                      "take ",
                      bytes_text(always_held(worker) + needed),
                      "; allow more, or make micro-batches smaller"));
      refuse(concat("workers may hold ", counted(static_cast<int>(limits_.live), "forward"),
                    "; worker ", worker, " has ", counted(static_cast<int>(needed), "stage"),
                    " and must hold one of each; allow more"));
    }
  }
  [[noreturn]] static void refuse(const std::string& message) {
    throw Error(ErrorKind::Experiment, message);
  }
  [[noreturn]] void refuse_memory() const {
    refuse(
        "no order was found that keeps to the memory: weights, gradients and one micro-batch leave "
        "nothing for what passes need while they run; allow more, or make micro-batches smaller");
  }

  void try_built_in(const std::string& name, const ProvedSchedule& proved) {
    const std::optional<int> staleness = staleness_of(proved);
    if (!staleness || *staleness > limits_.staleness) return;
    const std::vector<int> live = most_live(proved);
    if (std::ranges::any_of(live, [&](int count) { return count > limits_.live; })) return;
    const auto seconds = consider(proved, name);
    if (!seconds || *seconds >= best_.built_in_seconds) return;
    best_.built_in = name;
    best_.built_in_seconds = *seconds;
  }

  /// The simulation of a schedule; nullopt if it stops on hardware that takes messages in order.
  std::optional<Simulation> simulated(const ProvedSchedule& proved) {
    try {
      return simulate(proved, costs_, hardware_,
                      {.optimizer_state = limits_.optimizer_state,
                       .optimizer_tables = limits_.optimizer_tables,
                       .fixed = limits_.fixed});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Schedule) throw;
      stop_ = error;
      return std::nullopt;
    }
  }

  /// Simulates the schedule, and keeps it if it is the fastest so far. Its pace; nullopt if it does
  /// not keep to the memory, or stops.
  std::optional<double> consider(const ProvedSchedule& proved, const std::string& from) {
    excess_.assign(as_size(shape_.workers()), 0);
    std::optional<Simulation> whole = simulated(proved);
    if (!whole) return std::nullopt;
    Simulation& simulation = *whole;
    for (int worker = 0; counts_bytes() && worker < shape_.workers(); ++worker)
      excess_[as_size(worker)] =
          std::max(0.0, static_cast<double>(simulation.workers[as_size(worker)].peak.total()) -
                            memory_of(worker));
    if (std::ranges::max(excess_) > 0) return std::nullopt;
    const SteadyPace pace = steady_pace(proved.schedule, simulation);
    if (!best_.proved || pace.seconds < best_.pace.seconds * (1 - kSumRounding)) {
      best_.from = from;
      best_.proved = proved;
      best_.simulation = std::move(simulation);
      best_.pace = pace;
    }
    return pace.seconds;
  }

  /// Searches the orders of a task; what is proved of them.
  PaceBound search(OrderTask task) {
    PaceBound bound = pace_bound(task);
    constexpr int kRetries = 6;
    for (int i = 0; i < kRetries && has_room(task); ++i) {
      if (limits_.staleness > 0 ? list_stale(task, bound.seconds)
                                : synthesize_once(task, i == 0 ? &bound : nullptr))
        break;
      for (int worker = 0; worker < task.workers; ++worker)
        task.room[as_size(worker)] -= excess_[as_size(worker)];
    }
    return bound;
  }

  /// What one micro-batch takes at all stages of a worker.
  static double needed_by_one(const OrderTask& task, int worker) {
    double needed = 0;
    for (int stage = 0; stage < task.stages(); ++stage)
      if (task.worker_of[as_size(stage)] == worker) needed += task.held[as_size(stage)];
    return needed;
  }

  static bool has_room(const OrderTask& task) {
    for (int worker = 0; worker < task.workers; ++worker)
      if (needed_by_one(task, worker) > task.room[as_size(worker)] * (1 + kSumRounding))
        return false;
    return true;
  }

  /// Whether the search need not be repeated with less room: the orders that are found keep to the
  /// memory, or stop. `bound` is what is proved of the task.
  bool synthesize_once(const OrderTask& task, PaceBound* bound) {
    const Synthesis found = synthesize(task, candidates_[task.split], settings_);
    if (bound != nullptr) *bound = found.bound;
    const bool kept = consider(prove(schedule_of(task, shape_, found.orders)), "").has_value();
    return kept || std::ranges::max(excess_) == 0;  // less memory helps none that stops
  }

  /// Of orders that overlap mini-batches only those made by rules are tried.
  bool list_stale(const OrderTask& task, double bound) {
    bool some = false;
    std::vector<double> least(as_size(task.workers), kUnlimited);
    for (const ListRule& rule : list_rules(task, settings_.tries)) {
      if (some && settings_.stop && settings_.stop()) break;
      if (some && best_.pace.seconds <= bound * (1 + kSumRounding)) break;
      const auto orders = list_orders(task, rule);
      if (!orders) continue;
      some = consider(prove(schedule_of(task, shape_, *orders)), "").has_value() || some;
      std::ranges::transform(least, excess_, least.begin(),
                             [](double a, double b) { return std::min(a, b); });
    }
    excess_ = least;
    return some;
  }

  const PipelineShape& shape_;
  std::span<const StageCost> costs_;
  const Hardware& hardware_;
  const ScheduleLimits& limits_;
  const SynthesisSettings& settings_;
  bool whole_may_be_faster_;
  std::array<std::vector<NamedOrders>, 2> candidates_;  ///< [split] → those of built-in schemes
  std::vector<double> excess_;  ///< [worker] → bytes beyond the memory, of the last simulation
  SearchedSchedule best_;
  std::optional<Error> stop_;  ///< why a schedule stopped on this hardware
};

}  // namespace

double SearchedSchedule::gap() const {
  return gap_of(pace.seconds, bound.seconds);
}

double SearchedSchedule::bubble() const {
  double computing = 0;
  for (const WorkerReport& worker : simulation.workers) computing += worker.computing;
  const double all =
      pace.seconds * proved->schedule.shape.minibatches * proved->schedule.shape.workers();
  return std::max(0.0, 1 - computing / all);
}

SearchedSchedule search_schedule(const PipelineShape& shape, std::span<const StageCost> costs,
                                 Hardware hardware, const ScheduleLimits& limits,
                                 const SynthesisSettings& settings) {
  hardware.jitter = 0;
  return ScheduleSearch(shape, costs, hardware, limits, settings).run();
}

PaceBound schedule_bound(const PipelineShape& shape, std::span<const StageCost> costs,
                         const Hardware& hardware, const ScheduleLimits& limits) {
  return ScheduleSearch(shape, costs, hardware, limits, {}).bound();
}

// Where both halves of a backward take no longer than the whole, a split one with its halves
// together is as good.
bool whole_backwards_may_be_faster(std::span<const StageCost> costs) {
  return std::ranges::any_of(costs, [](const StageCost& cost) {
    return cost.backward < (cost.backward_input + cost.backward_weight) * (1 - kSumRounding);
  });
}

std::vector<int> most_live(const ProvedSchedule& proved) {
  const Schedule& schedule = proved.schedule;
  std::vector<int> most;
  for (int worker = 0; worker < std::ssize(schedule.workers); ++worker) {
    const auto& actions = schedule.workers[as_size(worker)];
    int live = 0, largest = 0;
    for (int i = 0; i < std::ssize(actions); ++i) {
      const Action& action = actions[as_size(i)];
      if (action.kind == ActionKind::Forward) largest = std::max(largest, ++live);
      const bool last = action.kind == ActionKind::BackwardWeight ||
                        action.kind == ActionKind::Backward ||
                        (action.kind == ActionKind::BackwardInput &&
                         proved.index.weight_backward(action) == kNowhere);
      if (last && action.loss == schedule.shape.stages - 1) --live;
    }
    most.push_back(largest);
  }
  return most;
}

std::optional<int> staleness_of(const ProvedSchedule& proved) {
  const int last = proved.schedule.shape.stages - 1;
  const auto unknown = [&](const Action& action) {
    return is_pass(action.kind) &&
           (action.weights.ahead != 0 || action.kind == ActionKind::Recompute ||
            (facts_of(action.kind).of_loss && action.loss != last));
  };
  if (any_action(proved.schedule, unknown)) return std::nullopt;
  int most = 0;
  for (const auto& replicas : proved.versions.stages)
    for (const StageVersions& stage : replicas)
      most = std::max({most, stage.forward_staleness, stage.backward_staleness});
  return most;
}

}  // namespace pipewright
