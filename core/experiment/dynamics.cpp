// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/dynamics.h"

#include "core/base/text.h"

namespace pipewright {

std::optional<Dynamics> dynamics_of(const Experiment& experiment) {
  constexpr int kLate = 1'000'000'000;  // a mini-batch after all warm-ups
  const std::optional<LinearRule> rule = experiment.optimizer->linear();
  if (!rule) return {};
  const auto late = [&](int minibatches) { return experiment.schedule(minibatches, kLate); };
  const SteadyStateOptions options{.sum_gradients = experiment.train.sum_gradients,
                                   .periodic = experiment.scheme->repeats() || is_periodic(late)};
  return Dynamics{.recurrence = steady_recurrence(late, options),
                  .rule = *rule,
                  .lr = experiment.optimizer->lr()};
}

std::string no_recurrence(const Experiment& experiment) {
  return concat(
      "the optimizer ", experiment.resolved.find_path("optimizer.name")->text,
      " is no linear recurrence, so it has no edge; expected sgd, adam, adamw or rmsprop");
}

}  // namespace pipewright
