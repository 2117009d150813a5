// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

enum Side : std::uint8_t { kNear, kFar };

/// A worker's steps of DualPipe, each with its side as the stage. The worker is the `place`-th from
/// the outside of `places`; the innermost has neighbouring stages.
class DualPipeSteps {
 public:
  DualPipeSteps(int place, int places, int microbatches) {
    const int inside = places - 1 - place, here = place + 1;
    for (int i = 0; i < 2 * inside; ++i) forward(kNear);
    for (int i = 0; i < here; ++i) forward(kNear), forward(kFar);
    for (int i = 0; i < inside; ++i) split_backward(kFar), weight_half(), forward(kFar);
    for (int i = 0; i < microbatches - 2 * places + here; ++i) {
      pair(kNear, /*beside=*/i > 0 || inside > 0);  // the first of the innermost need not wait
      pair(kFar);
    }
    for (int i = 0; i < inside; ++i) backward(kFar), pair(kFar);
    for (int i = 0; i < 2 * here; ++i) {
      const Side side = i % 2 == 0 ? kFar : kNear;
      if (i < here)
        backward(side);
      else
        split_backward(side);
    }
    for (int i = 0; i < inside; ++i) weight_half(), split_backward(kNear);
    while (!due_.empty()) weight_half();
  }

  std::vector<PassStep> take() { return std::move(steps_); }

 private:
  void forward(Side side) { steps_.push_back({ActionKind::Forward, side, forwards_[side]++}); }
  void backward(Side side) { steps_.push_back({ActionKind::Backward, side, backwards_[side]++}); }
  void split_backward(Side side) {
    steps_.push_back({ActionKind::BackwardInput, side, backwards_[side]++});
    due_.push_back({ActionKind::BackwardWeight, side, steps_.back().microbatch});
  }
  void weight_half() {
    steps_.push_back(due_.front());
    due_.pop_front();
  }
  /// A forward of that side and a backward of the other.
  void pair(Side side, bool beside = true) {
    forward(side);
    steps_.back().with_next = beside;
    backward(side == kNear ? kFar : kNear);
  }

  std::vector<PassStep> steps_;
  std::deque<PassStep> due_;  ///< weight-only halves to come
  int forwards_[2] = {}, backwards_[2] = {};
};

}  // namespace

std::vector<std::vector<int>> opposite_placement(int stages, int replicas) {
  if (stages % 2 != 0 || replicas % 2 != 0) return {};
  std::vector<std::vector<int>> placement;
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<int>& workers = placement.emplace_back();
    for (int stage = 0; stage < stages; ++stage)
      workers.push_back(replica / 2 * stages + (replica % 2 == 0 ? stage : stages - 1 - stage));
  }
  return placement;
}

PipelineShape with_opposite_placement(PipelineShape shape, const std::string& scheme) {
  const auto refuse = [&](const auto&... words) {
    throw Error(ErrorKind::Experiment, concat(words...));
  };
  if (shape.replicas % 2 != 0)
    refuse("pipeline.replicas is ", shape.replicas, "; ", scheme,
           " needs an even number, as two replicas share their workers in opposite directions");
  if (shape.stages % 2 != 0)
    refuse("pipeline.stages is ", shape.stages, "; ", scheme,
           " needs an even number, as otherwise both replicas of the middle stage would be on one "
           "worker");
  if (!shape.placement.empty())
    refuse("pipeline.placement is ", list_text(shape.placement), "; ", scheme,
           " places its replicas in opposite directions, so leave it out");
  shape.replica_placement = opposite_placement(shape.stages, shape.replicas);
  return shape;
}

Schedule dual_pipe_schedule(const PipelineShape& placed) {
  const bool opposite = !placed.replica_placement.empty();
  const int workers = opposite ? placed.stages : placed.workers_per_replica();
  const int places = opposite ? workers / 2 : workers;
  std::vector<std::vector<PassStep>> orders;
  for (int worker = 0; worker < workers; ++worker) {
    const int place = opposite ? std::min(worker, workers - 1 - worker) : worker;
    const bool second = place < worker;  // the worker is in the half in which replica 1 begins
    auto& steps = orders.emplace_back(
        DualPipeSteps(place, places, std::max(placed.microbatches, 2 * places)).take());
    for (PassStep& step : steps) {
      if (opposite) step.replica = (step.stage == kFar) != second ? 1 : 0;
      const bool forth = opposite ? step.replica == 0 : step.stage == kNear;
      step.stage = forth ? worker : (opposite ? workers : 2 * workers) - 1 - worker;
    }
    const auto missing = [&](const PassStep& step) {
      return step.stage >= placed.stages || step.microbatch >= placed.microbatches;
    };
    for (std::size_t i = 0; i + 1 < steps.size(); ++i)
      if (missing(steps[i + 1])) steps[i].with_next = false;
    std::erase_if(steps, missing);
  }
  return schedule_of_workers(placed, orders);
}

}  // namespace pipewright
