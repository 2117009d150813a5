// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

/// The actions of the first mini-batch on one worker, which does `steps` in each; there is room for
/// all of them. `replica` is the first of those that share the worker.
/// (The worker may stand for one of several stages that share a worker.)
std::vector<Action> actions_of_one(const PipelineShape& shape, int replica,
                                   const std::vector<PassStep>& steps) {
  int sharing = 1;
  for (const PassStep& step : steps) sharing = std::max(sharing, step.replica + 1);
  std::vector<int> open(as_size(shape.stages * sharing), 0);  // weight gradients to come
  const auto open_of = [&](const PassStep& step) -> int& {
    return open[as_size(step.replica * shape.stages + step.stage)];
  };
  for (const PassStep& step : steps)
    if (makes_weight_gradient(step.kind)) ++open_of(step);
  const auto updated =
      static_cast<std::size_t>(std::ranges::count_if(open, [](int count) { return count > 0; }));
  std::vector<Action> actions;
  actions.reserve((steps.size() + 2 * updated) * as_size(std::max(1, shape.minibatches)));
  for (const PassStep& step : steps) {
    Action action{.kind = step.kind,
                  .stage = step.stage,
                  .replica = replica + step.replica,
                  .microbatch = step.microbatch,
                  .loss = shape.stages - 1,
                  .with_next = step.with_next};
    actions.push_back(action);
    if (!makes_weight_gradient(step.kind) || --open_of(step) > 0) continue;
    action.microbatch = action.loss = 0;
    action.kind = ActionKind::Reduce;
    if (shape.replicas > 1) actions.push_back(action);
    action.kind = ActionKind::Update;
    actions.push_back(action);
  }
  return actions;
}

/// The actions of all mini-batches, each of which is like the first.
std::vector<Action> actions_of(const PipelineShape& shape, int replica,
                               const std::vector<PassStep>& steps) {
  std::vector<Action> actions = actions_of_one(shape, replica, steps);
  const std::size_t count = actions.size();
  for (int minibatch = 1; minibatch < shape.minibatches; ++minibatch)
    for (std::size_t i = 0; i < count; ++i) actions.emplace_back(actions[i]).minibatch = minibatch;
  if (shape.minibatches == 0) actions.clear();
  return actions;
}

/// Walks through the passes of worker w: the stage of each, and its micro-batch, which is the
/// number of passes of that stage before it.
class LoopedWalk {
 public:
  LoopedWalk(int worker, int workers, int chunks, int round, bool back)
      : worker_(worker),
        workers_(workers),
        chunks_(chunks),
        round_(round),
        back_(back),
        seen_(as_size(chunks), 0) {}

  PassStep next(ActionKind kind) {
    const int turn = passes_++ / round_ % chunks_;
    const int chunk = back_ ? chunks_ - 1 - turn : turn;
    return {kind, chunk * workers_ + worker_, seen_[as_size(chunk)]++};
  }

 private:
  int worker_, workers_, chunks_, round_;
  bool back_;
  int passes_ = 0;
  std::vector<int> seen_;  ///< per chunk: its passes so far
};

std::vector<PassStep> looped_steps(const LoopedOrder& order, int worker, int workers,
                                   int microbatches) {
  const int round = microbatches / std::max(1, microbatches / workers);
  const int passes = microbatches * order.chunks;
  const int warm_up =
      std::min(passes, (order.chunks - 1) * round + order.warm_up * (workers - 1 - worker));
  const int behind = order.weights_behind * worker;
  auto walk = [&](bool back) { return LoopedWalk(worker, workers, order.chunks, round, back); };
  LoopedWalk forward = walk(false), backward = walk(true), weights = walk(true);
  std::vector<PassStep> steps;
  steps.reserve(as_size(passes) * (order.split ? 3 : 2));
  for (int i = 0; i < warm_up; ++i) steps.push_back(forward.next(ActionKind::Forward));
  for (int i = 0; i < passes; ++i) {
    if (i < passes - warm_up) steps.push_back(forward.next(ActionKind::Forward));
    steps.push_back(backward.next(order.split ? ActionKind::BackwardInput : ActionKind::Backward));
    if (order.split && i >= behind) steps.push_back(weights.next(ActionKind::BackwardWeight));
  }
  for (int i = 0; order.split && i < std::min(behind, passes); ++i)
    steps.push_back(weights.next(ActionKind::BackwardWeight));
  return steps;
}

}  // namespace

Schedule schedule_of_workers(const PipelineShape& shape,
                             const std::vector<std::vector<PassStep>>& orders) {
  const int together = static_cast<int>(orders.size());
  PIPEWRIGHT_CHECK(together > 0 && shape.workers() % together == 0, "one order per worker");
  const int groups = shape.workers() / together, sharing = shape.replicas / groups;
  Schedule schedule = empty_schedule(shape);
  for (int worker = 0; worker < shape.workers(); ++worker)
    schedule.workers[as_size(worker)] =
        actions_of(shape, worker / together * sharing, orders[as_size(worker % together)]);
  return schedule;
}

std::vector<int> v_placement(int stages, int waves) {
  std::vector<int> placement;
  const int workers = (stages + 2 * waves - 1) / (2 * waves);
  for (int stage = 0; stage < stages; ++stage) {
    const int along = stage % (2 * workers);
    placement.push_back(along < workers ? along : 2 * workers - 1 - along);
  }
  return placement;
}

std::vector<int> looped_placement(int stages, int chunks) {
  std::vector<int> placement;
  const int workers = (stages + chunks - 1) / chunks;
  for (int stage = 0; chunks > 1 && stage < stages; ++stage) placement.push_back(stage % workers);
  return placement;
}

PipelineShape with_placement(PipelineShape shape, std::vector<int> placement,
                             const std::string& needed_by) {
  if (!shape.placement.empty() && shape.placement != placement)
    throw Error(ErrorKind::Experiment,
                concat("pipeline.placement is ", list_text(shape.placement), "; ", needed_by,
                       " needs ", list_text(placement), ", which is its default"));
  shape.placement = std::move(placement);
  return shape;
}

Schedule looped_schedule(PipelineShape shape, const LoopedOrder& order, const std::string& scheme) {
  if (order.chunks == 1) {  // each stage has its own order
    std::vector<std::vector<Action>> orders;
    for (int replica = 0; replica < shape.replicas; ++replica)
      for (int stage = 0; stage < shape.stages; ++stage)
        orders.push_back(actions_of(shape, replica,
                                    looped_steps(order, stage, shape.stages, shape.microbatches)));
    return schedule_of_stages(shape, std::move(orders));
  }
  std::vector<int> placement = looped_placement(shape.stages, order.chunks);
  shape = with_placement(
      std::move(shape), std::move(placement),
      concat(scheme, " with ", counted(order.chunks, "stage"), " per worker (scheme.chunks)"));
  const int workers = shape.workers_per_replica();
  const int rounds = std::max(1, shape.microbatches / workers);
  if (shape.microbatches % rounds != 0)
    throw Error(ErrorKind::Experiment,
                concat("pipeline.microbatches is ", shape.microbatches, "; ", scheme, " on ",
                       counted(workers, "worker"), " divides them into ", counted(rounds, "round"),
                       " of equal size, so expected is a multiple of ", rounds));
  std::vector<std::vector<PassStep>> orders;
  for (int worker = 0; worker < workers; ++worker) {
    auto& steps = orders.emplace_back(looped_steps(order, worker, workers, shape.microbatches));
    std::erase_if(steps, [&](const PassStep& step) { return step.stage >= shape.stages; });
  }
  return schedule_of_workers(shape, orders);
}

}  // namespace pipewright
