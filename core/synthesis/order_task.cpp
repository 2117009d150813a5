// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/order_task.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

ActionKind kind_of(Part part, bool split) {
  if (part == Part::Forward) return ActionKind::Forward;
  if (part == Part::Weight) return ActionKind::BackwardWeight;
  return split ? ActionKind::BackwardInput : ActionKind::Backward;
}

std::optional<Part> part_of(ActionKind kind, bool split) {
  for (const Part part : {Part::Forward, Part::Backward, Part::Weight})
    if (kind_of(part, split) == kind && (split || part != Part::Weight)) return part;
  return std::nullopt;
}

/// Collects what the messages of a mini-batch keep busy.
class Carriers {
 public:
  explicit Carriers(const Hardware& hardware) : hardware_(hardware) {}

  /// A message of each micro-batch between two workers.
  struct Message {
    double sent = 0;   ///< s for which it keeps the slowest link or bus on its way busy
    double delay = 0;  ///< s until it is there
  };
  Message add(int from, int to, std::int64_t size, int microbatches) {
    if (from == to) return {};
    const LinkSpeed speed = hardware_.speed_of(from, to);
    const auto bytes = static_cast<double>(size);
    double served = bytes / speed.bandwidth;
    for (std::size_t i = 0; i < hardware_.buses.size(); ++i) {
      const Bus& bus = hardware_.buses[i];
      if (!bus.carries(from, to)) continue;
      served = std::max(served, bytes / bus.bandwidth);
      const bool alone = std::ranges::count(hardware_.buses, bus.name, &Bus::name) == 1;
      keep_busy(concat("bus '", bus.name, "'", alone ? "" : concat(" (number ", i + 1, ")")),
                microbatches * bytes / bus.bandwidth);
    }
    const double sent = served + (speed.latency_occupies ? speed.latency : 0);
    keep_busy(concat("the link from worker ", from, " to worker ", to), microbatches * sent);
    if (hardware_.copy_engines > 0)
      keep_busy(concat("what worker ", from, " sends with"),
                microbatches * served / hardware_.copy_engines);
    if (hardware_.receives == Receives::ProgramOrder)
      keep_busy(concat("the wire into worker ", to), microbatches * sent);
    return {sent, served + speed.latency};
  }
  std::vector<Carrier> all() && { return std::move(all_); }

 private:
  void keep_busy(const std::string& name, double seconds) {
    const auto known = std::ranges::find(all_, name, &Carrier::name);
    if (known == all_.end())
      all_.push_back({name, seconds});
    else
      known->seconds += seconds;
  }

  const Hardware& hardware_;
  std::vector<Carrier> all_;
};

/// Whether the pass computes as in a pipeline that is flushed: with the weights that all passes of
/// its mini-batch have.
bool is_synchronous(const Action& action) {
  return action.scale == 1 && action.weights.ahead == 0 &&
         action.weights.source != Weights::Source::Version;
}

/// The passes that the worker does up to its last update of mini-batch 0; nullopt if there is
/// anything else among them.
std::optional<std::vector<Turn>> first_turns(const std::vector<Action>& actions, int last_stage,
                                             bool split) {
  std::vector<Turn> turns;
  bool over = false;
  for (const Action& action : actions) {
    if (action.minibatch > 0) {
      over = true;
      continue;
    }
    if (over) return std::nullopt;  // mini-batches overlap
    if (action.kind == ActionKind::Update) continue;
    const std::optional<Part> part = part_of(action.kind, split);
    if (!part || !is_synchronous(action)) return std::nullopt;
    if (*part != Part::Forward && action.loss != last_stage) return std::nullopt;
    turns.push_back({action.stage, *part});
  }
  return turns;
}

/// Whether the last of these forwards comes before the update that it has to wait for.
bool too_stale(const OrderTask& task, const std::array<int, kParts>& done) {
  const int minibatch = (done[0] - 1) / task.microbatches;
  const int updates = done[static_cast<std::size_t>(task.last_part())] / task.microbatches;
  return minibatch - updates > task.staleness;
}

/// The actions of a worker in its order, with an update behind each last gradient of a mini-batch.
std::vector<Action> actions_of(const OrderTask& task, const std::vector<Turn>& turns) {
  std::vector<std::array<int, kParts>> done(as_size(task.stages()), {0, 0, 0});
  std::vector<Action> actions;
  for (const Turn& turn : turns) {
    const int number = done[as_size(turn.stage)][static_cast<std::size_t>(turn.part)]++;
    Action action{.kind = kind_of(turn.part, task.split),
                  .stage = turn.stage,
                  .minibatch = number / task.microbatches,
                  .microbatch = number % task.microbatches,
                  .loss = task.stages() - 1};
    if (turn.part != Part::Forward) action.weights = Weights::of_forward();
    actions.push_back(action);
    if (turn.part != task.last_part() || action.microbatch + 1 < task.microbatches) continue;
    action.kind = ActionKind::Update;
    action.microbatch = action.loss = 0;
    action.weights = Weights::latest();
    actions.push_back(action);
  }
  return actions;
}

std::vector<std::vector<PassStep>> steps_of(const OrderTask& task, const Orders& orders) {
  std::vector<std::array<int, kParts>> done(as_size(task.stages()), {0, 0, 0});
  std::vector<std::vector<PassStep>> steps;
  for (const auto& turns : orders) {
    auto& worker = steps.emplace_back();
    for (const Turn& turn : turns)
      worker.push_back({kind_of(turn.part, task.split), turn.stage,
                        done[as_size(turn.stage)][static_cast<std::size_t>(turn.part)]++});
  }
  return steps;
}

}  // namespace

OrderTask order_task(const PipelineShape& shape, std::span<const StageCost> costs,
                     const Hardware& hardware, bool split) {
  OrderTask task;
  task.microbatches = shape.microbatches;
  task.workers = shape.workers_per_replica();
  task.split = split;
  Carriers carriers(hardware);
  for (int stage = 0; stage < shape.stages; ++stage) {
    const StageCost& cost = costs[as_size(stage)];
    const int worker = shape.worker_of(stage, 0);
    const double factor = hardware.time_factor(worker);
    auto seconds = [&](ActionKind kind) { return factor * seconds_of(cost, kind); };
    task.worker_of.push_back(worker);
    task.seconds.push_back({seconds(ActionKind::Forward),
                            seconds(split ? ActionKind::BackwardInput : ActionKind::Backward),
                            split ? seconds(ActionKind::BackwardWeight) : 0});
    task.update.push_back(seconds(ActionKind::Update));
    const int next = stage + 1 == shape.stages ? worker : shape.worker_of(stage + 1, 0),
              before = stage == 0 ? worker : shape.worker_of(stage - 1, 0);
    const auto forward =
        carriers.add(worker, next, cost.sent_bytes.value_or(cost.output_bytes), shape.microbatches);
    const auto backward = carriers.add(
        worker, before, cost.sent_gradient_bytes.value_or(cost.input_bytes), shape.microbatches);
    task.forward_delay.push_back(forward.delay);
    task.forward_sent.push_back(forward.sent);
    task.backward_delay.push_back(backward.delay);
    task.backward_sent.push_back(backward.sent);
  }
  task.carriers = std::move(carriers).all();
  task.held.assign(as_size(shape.stages), 1);
  task.room.assign(as_size(task.workers), kUnlimited);
  return task;
}

// An order that mixes whole and split backwards is one of this task: the halves of a whole one come
// one behind the other in its place, and end no later.
OrderTask least_task(const OrderTask& split, const OrderTask& whole) {
  OrderTask least = split;
  for (std::size_t stage = 0; stage < least.seconds.size(); ++stage) {
    const auto& [forward, input, weight] = split.seconds[stage];
    const double both = whole.seconds[stage][1];
    const double gradient = std::min(input, both);
    least.seconds[stage] = {forward, gradient, std::min(input + weight, both) - gradient};
  }
  return least;
}

bool fits(const OrderTask& task, const Orders& orders) {
  if (std::ssize(orders) != task.workers) return false;
  for (int worker = 0; worker < task.workers; ++worker)
    if (!fits(task, worker, orders[as_size(worker)])) return false;
  return true;
}

bool fits(const OrderTask& task, int worker, const std::vector<Turn>& turns) {
  const double room = task.room[as_size(worker)] * (1 + kSumRounding);
  std::vector<std::array<int, kParts>> done(as_size(task.stages()), {0, 0, 0});
  double live = 0;
  for (const Turn& turn : turns) {
    if (task.worker_of[as_size(turn.stage)] != worker) return false;
    auto& counts = done[as_size(turn.stage)];
    const auto part = static_cast<std::size_t>(turn.part);
    if (turn.part == Part::Weight && !task.split) return false;
    if (++counts[part] > (part == 0 ? task.passes() : counts[part - 1])) return false;
    if (turn.part == Part::Forward) {
      live += task.held[as_size(turn.stage)];
      if (too_stale(task, counts)) return false;
    }
    if (live > room) return false;
    if (turn.part == task.last_part()) live -= task.held[as_size(turn.stage)];
  }
  for (int stage = 0; stage < task.stages(); ++stage) {
    const auto& counts = done[as_size(stage)];
    const bool here = task.worker_of[as_size(stage)] == worker;
    if (counts[static_cast<std::size_t>(task.last_part())] != (here ? task.passes() : 0))
      return false;
  }
  return true;
}

Schedule schedule_of(const OrderTask& task, const PipelineShape& shape, const Orders& orders) {
  if (task.minibatches == 1) return schedule_of_workers(shape, steps_of(task, orders));
  Schedule schedule = empty_schedule(shape);
  for (std::size_t worker = 0; worker < orders.size(); ++worker)
    schedule.workers[worker] = actions_of(task, orders[worker]);
  return schedule;
}

Orders orders_of(const Schedule& schedule, bool split) {
  if (schedule.shape.replicas != 1 || !schedule.auxiliary.empty()) return {};
  Orders orders;
  for (const auto& actions : schedule.workers) {
    auto turns = first_turns(actions, schedule.shape.stages - 1, split);
    if (!turns) return {};
    orders.push_back(*std::move(turns));
  }
  return orders;
}

}  // namespace pipewright
