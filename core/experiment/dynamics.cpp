// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/dynamics.h"

namespace pipewright {

std::optional<Dynamics> dynamics_of(const Experiment& experiment) {
  constexpr int kLate = 1'000'000'000;  // a mini-batch after all warm-ups
  const std::optional<LinearRule> rule = experiment.optimizer->linear();
  if (!rule) return {};
  const auto make = [&](int minibatches) { return experiment.schedule(minibatches, kLate); };
  return Dynamics{
      .recurrence = steady_recurrence(make, {.sum_gradients = experiment.train.sum_gradients,
                                             .repeats = experiment.scheme->repeats()}),
      .rule = *rule,
      .lr = experiment.optimizer->lr()};
}

}  // namespace pipewright
