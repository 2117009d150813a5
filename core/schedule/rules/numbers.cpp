// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/invalid_schedule.h"
#include "core/schedule/rules.h"

namespace pipewright {
namespace {

/// Checks the workers of replicas that share them. Those of one stage meet at its reductions, so
/// they have to be on different ones.
void check_replica_placement(const PipelineShape& shape) {
  const auto& placement = shape.replica_placement;
  if (placement.empty()) return;
  const auto whole = [&](const std::vector<int>& workers) {
    return workers.size() == as_size(shape.stages) && std::ranges::min(workers) >= 0;
  };
  if (placement.size() != as_size(shape.replicas) || !std::ranges::all_of(placement, whole))
    refuse_shape("its placement does not name one worker for each stage of each replica");
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<int> workers = shape.workers_of(stage);
    std::ranges::sort(workers);
    if (std::ranges::adjacent_find(workers) != workers.end())
      refuse_shape(concat("two replicas of stage ", stage, " are on worker ",
                          *std::ranges::adjacent_find(workers),
                          ", where they can never meet at a reduction"));
  }
}

}  // namespace

void check_numbers(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  if (shape.stages < 1 || shape.replicas < 1 || shape.microbatches < 1 || shape.minibatches < 1)
    refuse_shape("it needs at least one stage, replica, micro-batch and mini-batch");
  if (!shape.placement.empty() && shape.placement.size() != as_size(shape.stages))
    refuse_shape("its placement does not name one worker per stage");
  check_replica_placement(shape);
  if (schedule.workers.size() != as_size(shape.workers()))
    refuse_shape(concat("it has actions for ", counted(schedule.workers.size(), "worker"),
                        "; its stages and replicas need ", shape.workers()));
  if (schedule.learns_from.size() != as_size(shape.stages))
    refuse_shape("its learns_from does not say for every stage which losses it learns from");
  auto in = [](int value, int end) { return value >= 0 && value < end; };
  for (std::size_t i = 0; i < shape.skips.size(); ++i) {
    const auto& [from, to, gradient, lent, parameter] = shape.skips[i];
    if (!in(from, shape.stages) || !in(to, shape.stages) || from >= to)
      refuse_shape(concat("it has a skip connection from stage ", from, " to stage ", to,
                          "; expected one to a later stage"));
    if (lent > 0 && schedule.learns_from[as_size(from)] != schedule.learns_from[as_size(to)])
      refuse_shape(concat("stages ", from, " and ", to,
                          " share weights and do not learn from the same losses"));
    for (std::size_t j = 0; j < i; ++j)
      if (shape.skips[j].from > from || (shape.skips[j].to > from && shape.skips[j].to < to))
        refuse_shape(
            "its skip connections are not nested: what is put aside last has to be taken back "
            "first");
  }
  for (const TiedCopies& tied : shape.tied)
    if (!in(tied.first, tied.second + 1) || !in(tied.second, shape.stages))
      refuse_shape(concat("it has copies of a parameter at stages ", tied.first, " and ",
                          tied.second, "; expected an earlier and a later stage"));
  for (int k = 0; k < shape.stages; ++k)
    for (const int loss : schedule.learns_from[as_size(k)])
      if (loss < k || loss >= shape.stages)
        refuse_shape(concat("stage ", k, " learns from the loss of stage ", loss,
                            "; expected its own loss or that of a later stage"));
  for (std::size_t i = 0; i < schedule.auxiliary.size(); ++i)
    if (!in(schedule.auxiliary[i], shape.stages - 1) ||
        (i > 0 && schedule.auxiliary[i] <= schedule.auxiliary[i - 1]))
      refuse_shape("its auxiliary heads have to be at stages before the last, in ascending order");
  for_each_action(schedule, [&](ActionPlace at, const Action& a) {
    const auto place = [&] {
      return concat("worker ", at.first, ", action ", at.second, " (", action_name(a), ")");
    };
    if (!in(a.stage, shape.stages) || !in(a.replica, shape.replicas) ||
        !in(a.minibatch, shape.minibatches) || !in(a.microbatch, shape.microbatches) ||
        !in(a.loss, shape.stages) || !in(a.weights.rule, static_cast<int>(schedule.rules.size())))
      refuse_shape(concat(
          place(),
          " names a stage, replica, mini-batch, micro-batch, loss or weight rule that does not "
          "exist"));
    if (is_part_of_backward(a.kind) && a.loss < a.stage)
      refuse_shape(concat(place(), " goes back from the loss of stage ", a.loss,
                          ", an earlier stage than its own"));
    if (shape.worker_of(a.stage, a.replica) != at.first)
      refuse_shape(concat(place(), " has to be on worker ", shape.worker_of(a.stage, a.replica),
                          ", which holds its stage"));
  });
}

}  // namespace pipewright
