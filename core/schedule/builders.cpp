// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/builders.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {
namespace {

/// Builds the order of one stage, before stages share workers.
class StageOrder {
 public:
  StageOrder(const PipelineShape& shape, int stage, int replica, const WeightRule& forward,
             const WeightRule& backward, double update_scale)
      : shape_(shape),
        stage_(stage),
        replica_(replica),
        forward_(forward),
        backward_(backward),
        update_scale_(update_scale) {
    const std::size_t passes = 2 * as_size(shape.microbatches);
    const std::size_t updates = shape.replicas > 1 ? 2 : 1;
    actions_.reserve(as_size(shape.minibatches) * (passes + updates));
  }

  void add_forward(int minibatch, int microbatch) {
    add_pass(ActionKind::Forward, minibatch, microbatch, forward_, first_forward_);
  }
  void add_backward(int minibatch, int microbatch) {
    add_pass(ActionKind::Backward, minibatch, microbatch, backward_, first_backward_);
  }
  void add_update(int minibatch) {
    if (shape_.replicas > 1)
      actions_.push_back({.kind = ActionKind::Reduce,
                          .stage = stage_,
                          .replica = replica_,
                          .minibatch = minibatch});
    actions_.push_back({.kind = ActionKind::Update,
                        .stage = stage_,
                        .replica = replica_,
                        .minibatch = minibatch,
                        .scale = update_scale_});
    ++updates_;
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  /// `first` holds the mini-batch of the last pass of that kind, and the updates before the first
  /// one.
  void add_pass(ActionKind kind, int minibatch, int microbatch, const WeightRule& rule,
                std::pair<int, int>& first) {
    if (first.first != minibatch) first = {minibatch, updates_};
    const PassPlace place{stage_,   shape_.stages, minibatch, microbatch, shape_.microbatches,
                          updates_, first.second};
    actions_.push_back({.kind = kind,
                        .stage = stage_,
                        .replica = replica_,
                        .minibatch = minibatch,
                        .microbatch = microbatch,
                        .loss = shape_.stages - 1,
                        .weights = rule(place)});
  }

  const PipelineShape& shape_;
  int stage_, replica_;
  const WeightRule& forward_;
  const WeightRule& backward_;
  double update_scale_;
  int updates_ = 0;
  std::pair<int, int> first_forward_{-1, 0}, first_backward_{-1, 0};
  std::vector<Action> actions_;
};

/// Adds micro-batches [begin, end), numbered over the whole schedule: warm-up forwards, (F, B)
/// pairs, drain.
void add_group(StageOrder& order, int begin, int end, const PipelineShape& shape, int depth,
               PassOrder how) {
  const int count = end - begin, microbatches = shape.microbatches;
  const int most =
      (how.in_flight > 0 ? std::min(depth, how.in_flight - 1) : depth) + how.in_reverse - 1;
  const int warm_up = how.one_at_a_time ? 0 : how.fill_drain ? count : std::min(most, count);
  auto forward = [&](int f) { order.add_forward(f / microbatches, f % microbatches); };
  auto backward = [&](int f, bool last) {
    order.add_backward(f / microbatches, f % microbatches);
    if (last) order.add_update(f / microbatches);
  };
  for (int f = begin; f < begin + warm_up; ++f) forward(f);
  if (how.fill_drain) {  // GPipe goes from the last micro-batch to the first
    for (int f = end - 1; f >= begin; --f) backward(f, f == begin);
    return;
  }
  int next = begin;
  auto backward_next = [&] {
    const int first = next - next % how.in_reverse, last = first + how.in_reverse - 1;
    backward(first + last - next, (next + 1) % microbatches == 0);
    ++next;
  };
  for (int f = begin + warm_up; f < end; ++f) {
    forward(f);
    backward_next();
  }
  while (next < end) backward_next();
}

}  // namespace

int PassPlace::distance(bool steady) const {
  if (!steady) return minibatch - updates_before;
  return minibatch - floor_quotient(minibatch * microbatches + microbatch - depth(), microbatches);
}

Schedule empty_schedule(const PipelineShape& shape) {
  Schedule schedule;
  schedule.shape = shape;
  schedule.learns_from.assign(as_size(shape.stages), {shape.stages - 1});
  schedule.workers.resize(as_size(shape.workers()));
  return schedule;
}

Schedule pipeline_schedule(const PipelineShape& shape, PassOrder how, const WeightRule& forward,
                           const WeightRule& backward, const ScaleRule& update_scale) {
  const int all = shape.minibatches * shape.microbatches;
  const int group = how.flush ? shape.microbatches : all;
  std::vector<std::vector<Action>> orders;
  for (int replica = 0; replica < shape.replicas; ++replica) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      StageOrder order(shape, stage, replica, forward, backward,
                       update_scale ? update_scale(stage) : 1);
      for (int begin = 0; begin < all; begin += group)
        add_group(order, begin, begin + group, shape, shape.stages - 1 - stage, how);
      orders.push_back(order.take());
    }
  }
  return schedule_of_stages(shape, std::move(orders));
}

Schedule unfilled_stash_schedule(const PipelineShape& shape, const ScaleRule& update_scale) {
  const WeightRule queued = [](const PassPlace& pass) {
    return Weights::of_version(pass.minibatch - pass.distance(/*steady=*/true));
  };
  Schedule schedule =
      pipeline_schedule(shape, {.flush = false}, latest_weights, queued, update_scale);
  for (int stage = 0; stage < shape.stages; ++stage)
    schedule.earlier.push_back(-floor_quotient(stage + 1 - shape.stages, shape.microbatches));
  return schedule;
}

Schedule evaluation_schedule(const PipelineShape& shape) {
  PipelineShape forwards = shape;
  forwards.training = false;
  Schedule schedule = empty_schedule(forwards);
  const int all = shape.minibatches * shape.microbatches;
  // Stages that share a worker take turns after as many micro-batches as a link holds, so that none
  // waits for room that only a later stage of its own worker would make.
  const int turn = shape.link_capacity > 0 ? shape.link_capacity : shape.workers_per_replica();
  for (int begin = 0; begin < all; begin += turn)
    for (int replica = 0; replica < shape.replicas; ++replica)
      for (int stage = 0; stage < shape.stages; ++stage)
        for (int f = begin; f < std::min(all, begin + turn); ++f)
          schedule.workers[as_size(shape.worker_of(stage, replica))].push_back(
              {.kind = ActionKind::Forward,
               .stage = stage,
               .replica = replica,
               .minibatch = f / shape.microbatches,
               .microbatch = f % shape.microbatches,
               .loss = shape.stages - 1});
  return schedule;
}

}  // namespace pipewright
