// SPDX-License-Identifier: Apache-2.0
#include "core/training/evaluations_within.h"

#include <algorithm>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error_at.h"

namespace pipewright {
namespace {

[[noreturn]] void refuse(const Experiment& e, const std::string& why, const char* where) {
  throw experiment_error(
      e.where(where), "train.evaluate asks for evaluations where the pipeline is not drained, and ",
      why);
}

/// Takes the value that was set aside for the first evaluation, which no longer needs it; it is
/// `own` if the stage has not replaced it yet.
template <class Kept, class T>
T taken(Kept& kept, std::size_t evaluation, T own) {
  if (kept.next == evaluation) {
    ++kept.next;
    return own;
  }
  T first = std::move(kept.values.front());
  kept.values.pop_front();
  return first;
}

}  // namespace

EvaluationsWithin::EvaluationsWithin(const Plan& plan,
                                     const std::vector<std::unique_ptr<Stage>>& stages,
                                     std::function<void(std::int64_t minibatches)> evaluate)
    : plan_(plan), stages_(stages), evaluate_(std::move(evaluate)) {}

Interludes* EvaluationsWithin::begin(std::int64_t first, std::int64_t end) {
  first_ = first;
  after_ = plan_.drains.evaluations(first, end);
  done_ = 0;
  sites_.assign(as_size(plan_.training.schedule.shape.stages), {});
  return after_.empty() ? nullptr : this;
}

void EvaluationsWithin::before(const Action& action, Stage& stage) {
  if (action.replica != 0) return;
  Site& site = sites_[as_size(action.stage)];
  if (action.kind == ActionKind::Update)
    keep(site.weights, action, [&] { return stage.weights_aside(true); });
  else
    keep(site.buffers, action, [&] { return stage.buffers_aside(true); });
}

/// Sets aside what an action of a later mini-batch is about to change.
template <class T, class Copy>
void EvaluationsWithin::keep(Kept<T>& kept, const Action& action, const Copy& copy) {
  if (action.minibatch < kept.last)
    throw Error(ErrorKind::Schedule,
                concat("train.evaluate: stage ", action.stage, " comes to mini-batch ",
                       action.minibatch, " after mini-batch ", kept.last,
                       ", so that it never has the weights of one moment"));
  kept.last = action.minibatch;
  if (kept.next == after_.size() || after_[kept.next] > action.minibatch) return;
  const T value = copy();
  for (; kept.next < after_.size() && after_[kept.next] <= action.minibatch; ++kept.next)
    kept.values.push_back(value);
}

void EvaluationsWithin::pause(int minibatches) {
  for (std::size_t k = 0; k < sites_.size(); ++k)
    if (stages_[k])
      stages_[k]->show(
          Stage::Aside{taken(sites_[k].weights, done_, stages_[k]->weights_aside(false)),
                       taken(sites_[k].buffers, done_, stages_[k]->buffers_aside(false))});
  ++done_;
  evaluate_(first_ + minibatches);
  for (std::size_t k = 0; k < sites_.size(); ++k)
    if (stages_[k]) stages_[k]->show({});
}

void check_evaluations(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  if (plan.drains.evaluate_every == 0) return;
  if (plan.test.empty())
    throw experiment_error(e.where("train.evaluate"),
                           "train.evaluate asks for evaluations, and there are no test samples");
  if (!plan.drains.evaluates_within()) return;
  for (const EdgeCodecs& edge : e.pipeline.compression)
    if (edge.in_evaluation && edge.forward.codec && edge.forward.codec->evaluates_by_state())
      refuse(e,
             concat("what ", edge.forward.name,
                    " sends depends on mini-batches that later weights belong to; expected "
                    "in_evaluation: false, or evaluations at the ends of epochs"),
             "pipeline.compression");
  if (e.perturbation.stale_batch_norm > 0)
    refuse(e, "perturb.stale_batch_norm lags behind those that the pipeline has begun; expected 0",
           "perturb");
  if (e.pipeline.batch_norm == RunningStatistics::PerPass &&
      e.pipeline.recompute != Recomputation::Never)
    refuse(e,
           "with batch_norm: per_pass recomputations change the statistics after later forwards "
           "have; expected per_microbatch or deferred",
           "pipeline.batch_norm");
}

}  // namespace pipewright
