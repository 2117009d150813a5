// SPDX-License-Identifier: Apache-2.0
// What a worker holds follows from the order of its actions and from `versions`. Only messages that
// wait to be taken come from elsewhere, and only host copies go on beside the actions. So each
// worker is walked through by itself, and these changes are merged in by time.
#include "core/simulation/simulate_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/cost/stage_memory.h"
#include "core/schedule/lent_weights.h"

namespace pipewright {
namespace {

constexpr std::int32_t kNever = -1;

/// Bytes that come or go while actions run.
struct Change {
  double time = 0;
  std::int64_t boundaries = 0;                ///< a message that arrives
  std::int64_t activations = 0, on_host = 0;  ///< by a host copy
};

/// Counts the memory of one worker.
class Memory {
 public:
  Memory(const ProvedSchedule& proved, std::span<const StageCost> costs, const ClockTimes& times,
         const SimulationOptions& options, std::vector<std::int32_t>& last_use,
         std::vector<bool>& recomputed, WorkerReport& report)
      : schedule_(proved.schedule),
        shape_(schedule_.shape),
        index_(proved.index),
        slots_(proved.index.slots()),
        costs_(costs),
        times_(times),
        options_(options),
        last_use_(last_use),
        recomputed_(recomputed),
        report_(report),
        borrowed_(proved),
        shares_(shares_weights(proved.schedule.shape)) {}

  void walk(const std::vector<Action>& actions, const std::vector<Span>& spans,
            const std::vector<ActionWeights>& weights) {
    now_.weights = options_.fixed;
    hold_stages(actions);
    gather_changes(actions, spans);
    sample(0);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (goes_on_beside(actions[i].kind)) continue;
      let_change(spans[i].begin);
      begin(actions[i], weights[i]);
      now_.passing += std::exchange(beside_, 0);
      sample(spans[i].begin);
      if (is_fused_pair(actions, i)) beside_ = now_.passing;  // until the backward beside it ends
      let_change(std::nextafter(spans[i].end, 0.0));  // an arrival at the very end counts after it
      end(actions[i], weights[i], static_cast<std::int32_t>(i));
      if (options_.memory_over_time) sample(spans[i].end);
    }
  }

 private:
  /// A sum of gradients.
  struct GradientSum {
    bool there = false;  ///< made since the last update
    std::int64_t bytes = 0;
  };
  struct HeldStage {
    bool held = false;  ///< the worker holds the stage
    GradientSum layers, head;
    bool starts_at_own_loss = false;  ///< a backward does
    std::size_t spare = 0;            ///< tensors of versions that were freed, for later ones
  };

  const StageCost& cost(const Action& action) const { return costs_[as_size(action.stage)]; }
  HeldStage& held(const Action& action) {
    return held_[as_size(action.replica) * costs_.size() + as_size(action.stage)];
  }
  /// The gradient of the stage's output that its head keeps for each micro-batch.
  std::int64_t kept_by_head(const Action& action) {
    return held(action).starts_at_own_loss ? cost(action).head_memory.kept_bytes : 0;
  }

  /// Counts what the worker holds from the start, and finds the last action that needs each
  /// forward's activations.
  void hold_stages(const std::vector<Action>& actions) {
    held_.resize(costs_.size() * as_size(shape_.replicas));
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (is_pass(action.kind))
        last_use_[slots_.forward(action, action.stage)] = static_cast<std::int32_t>(i);
      if (action.kind == ActionKind::Recompute)
        recomputed_[slots_.forward(action, action.stage)] = true;
      HeldStage& stage = held(action);
      if (starts_at_own_loss(action)) stage.starts_at_own_loss = true;
      if (stage.held) continue;
      stage.held = true;
      const auto parameters = static_cast<double>(cost(action).parameter_bytes);
      now_.weights += (1 + schedule_.earlier_of(action.stage)) * cost(action).version_bytes() +
                      cost(action).buffer_bytes;
      if (shape_.training)
        now_.optimizer +=
            static_cast<std::int64_t>(parameters * options_.optimizer_state) +
            (options_.optimizer_tables.empty() ? 0
                                               : options_.optimizer_tables[as_size(action.stage)]);
    }
  }

  void gather_changes(const std::vector<Action>& actions, const std::vector<Span>& spans) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (goes_on_beside(action.kind)) add_copy(action, spans[i]);
      const std::int64_t bytes = incoming(action);
      if (bytes == 0) continue;
      const InputSource input = input_source(action);
      changes_.push_back(
          {.time = input.gradient ? times_.backward_arrivals[slots_.backward(action, input.stage)]
                                  : times_.forward_arrivals[slots_.forward(action, input.stage)],
           .boundaries = bytes});
    }
    std::ranges::sort(changes_, {}, [](const Change& change) {
      return std::tuple(change.time, change.activations, change.on_host);  // first what is freed
    });
  }

  void add_copy(const Action& action, const Span& span) {
    const std::int64_t bytes = cost(action).activation_bytes;
    if (facts_of(action.kind).restores < 0) {
      changes_.push_back({.time = span.begin, .on_host = bytes});
      changes_.push_back({.time = span.end, .activations = -bytes});
    } else {
      changes_.push_back({.time = span.begin, .activations = bytes});
      changes_.push_back({.time = span.end, .on_host = -bytes});
    }
  }

  /// Bytes that the action takes from another stage, on the same worker or on another.
  std::int64_t incoming(const Action& action) const {
    const InputSource input = input_source(action);
    if (input.stage < 0) return 0;
    return input.gradient ? cost(action).output_bytes : cost(action).input_bytes;
  }

  void let_change(double until) {
    for (; changed_ < changes_.size() && changes_[changed_].time <= until; ++changed_) {
      const Change& change = changes_[changed_];
      now_.boundaries += change.boundaries;
      now_.activations += change.activations;
      on_host_ += change.on_host;
      report_.host.most_bytes = std::max(report_.host.most_bytes, on_host_);
      if (change.boundaries != 0 || change.activations != 0) sample(change.time);
    }
  }

  void begin(const Action& action, const ActionWeights& weights) {
    const StageCost& stage = cost(action);
    change_borrowed([&] { borrowed_.begin(action); });
    if (weights.makes) add_version(action);
    if (action.kind == ActionKind::Update && !weights.in_place) add_version(action);
    if (action.kind == ActionKind::Forward && action.stage == 0)
      now_.boundaries += stage.input_bytes;
    if (keeps_activations(action)) now_.activations += stage.activation_bytes;
    if (action.kind != ActionKind::Forward) now_.boundaries -= incoming(action);  // now passing
    if (is_pass(action.kind)) hold_passing(action);
    if (action.kind == ActionKind::Reduce) widen(held(action).layers, stage.gradient_sum_bytes());
    const HeadMemory& head = stage.head_memory;
    if (action.kind == ActionKind::Head) {
      now_.activations += kept_by_head(action);
      add(held(action).head, head.gradient_bytes(), head.parameter_bytes);
    } else if (adds_gradient(action.kind)) {
      add(held(action).layers, stage.gradient_bytes(), stage.gradient_sum_bytes());
    }
  }

  /// A stage keeps the memory of versions that were freed, and makes later ones there.
  void add_version(const Action& action) {
    HeldStage& stage = held(action);
    if (stage.spare > 0)
      --stage.spare;
    else
      now_.weights += cost(action).version_bytes();
  }

  /// A sum of several takes as much as the weights.
  void add(GradientSum& sum, std::int64_t one, std::int64_t several) {
    const std::int64_t bytes = sum.there ? several : one;
    now_.gradients += bytes - sum.bytes;
    sum.bytes = bytes;
    sum.there = true;
  }

  /// Replicas add in the wide format, whatever that of their own gradient is.
  void widen(GradientSum& sum, std::int64_t wide) {
    if (!sum.there) return;
    now_.gradients += wide - sum.bytes;
    sum.bytes = wide;
  }

  /// As in StageMemories: a backward that creates the gradients frees activations as it goes.
  void hold_passing(const Action& action) {
    const StageCost& stage = cost(action);
    const HeadMemory& head = stage.head_memory;
    now_.passing = stage.peak_bytes;
    if (action.kind == ActionKind::Head) {
      now_.passing = held(action).head.there ? std::max(head.peak_bytes, head.peak_adding_bytes)
                                             : head.peak_bytes;
    } else if (!adds_gradient(action.kind)) {
      if (!keeps_activations(action) && action.kind == ActionKind::Forward)
        now_.passing = stage.peak_bare_bytes;
    } else if (held(action).layers.there) {
      now_.passing = std::max(stage.peak_bytes, stage.peak_adding_bytes);
    } else {
      given_back_ = std::min(stage.freed_bytes, stage.activation_bytes);
      now_.activations -= given_back_;
      now_.passing -= stage.freed_bytes - given_back_;
    }
    // The gradient that arrives is in the peak; from the head it is one that is kept already.
    if (starts_at_own_loss(action)) now_.passing -= kept_by_head(action);
  }

  /// Whether the action keeps activations. A forward that is run again keeps its input only.
  bool keeps_activations(const Action& action) const {
    return action.kind == ActionKind::Recompute ||
           (action.kind == ActionKind::Forward &&
            !recomputed_[slots_.forward(action, action.stage)]);
  }

  void end(const Action& action, const ActionWeights& weights, std::int32_t position) {
    const StageCost& stage = cost(action);
    now_.passing = 0;
    now_.activations += std::exchange(given_back_, 0);
    held(action).spare += weights.frees.size();
    if (action.kind == ActionKind::BackwardInput && index_.weight_backward(action) != kNowhere)
      now_.activations += stage.half_bytes;
    if (action.kind == ActionKind::BackwardWeight) now_.activations -= stage.half_bytes;
    if (action.kind == ActionKind::Update) {
      HeldStage& updated = held(action);
      for (GradientSum* sum : {&updated.layers, &updated.head})
        now_.gradients -= std::exchange(*sum, GradientSum()).bytes;
    }
    const bool last =
        is_pass(action.kind) && last_use_[slots_.forward(action, action.stage)] == position;
    change_borrowed([&] { borrowed_.end(action, last); });
    if (!last) return;
    now_.activations -= stage.activation_bytes + kept_by_head(action);
    now_.boundaries -= stage.input_bytes;
  }

  template <class Step>
  void change_borrowed(const Step& step) {
    if (!shares_) return;
    now_.weights -= borrowed_.all();
    step();
    now_.weights += borrowed_.all();
  }

  void sample(double time) {
    report_.most_state =
        std::max(report_.most_state, now_.weights + now_.gradients + now_.optimizer);
    const std::int64_t total = now_.total();
    if (total > most_) {
      most_ = total;
      report_.peak = now_;
      report_.peak_at = time;
    }
    if (options_.memory_over_time) report_.memory.push_back({time, now_});
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  const PassIndex& index_;
  const PassSlots& slots_;
  const std::span<const StageCost> costs_;
  const ClockTimes& times_;
  const SimulationOptions& options_;
  std::vector<std::int32_t>& last_use_;  ///< [forward] → the last action that needs it
  std::vector<bool>& recomputed_;        ///< [forward] → whether it is run again
  WorkerReport& report_;
  BorrowedBytes borrowed_;
  const bool shares_;
  std::vector<HeldStage> held_;  ///< [replica][stage]
  std::vector<Change> changes_;  ///< by time
  std::size_t changed_ = 0;      ///< those that have happened
  std::int64_t on_host_ = 0;
  MemoryUse now_;
  std::int64_t beside_ = 0;      ///< what the forward of the running fused pair needs to pass
  std::int64_t given_back_ = 0;  ///< activations that the running action has freed
  std::int64_t most_ = -1;
};

}  // namespace

void count_memory(const ProvedSchedule& proved, std::span<const StageCost> costs,
                  const ClockTimes& times, const SimulationOptions& options,
                  Simulation& simulation) {
  const Schedule& schedule = proved.schedule;
  const std::size_t forwards = proved.index.slots().forwards();
  std::vector<std::int32_t> last_use(forwards, kNever);
  std::vector<bool> recomputed(forwards, false);
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    Memory(proved, costs, times, options, last_use, recomputed, simulation.workers[w])
        .walk(schedule.workers[w], times.spans[w], proved.versions.workers[w]);
}

}  // namespace pipewright
