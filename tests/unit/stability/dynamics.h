// SPDX-License-Identifier: Apache-2.0
/// Dynamics of schemes and optimizers, as the tests of stability name them.
#pragma once

#include <string>

#include "core/stability/edges.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {

inline LinearRule momentum_rule(double momentum) {
  return {.momentum = momentum, .knows_all_predictions = true};
}
inline LinearRule nesterov_rule(double momentum) {
  return {.momentum = momentum,
          .of_velocity = momentum,
          .of_gradient = 1,
          .knows_all_predictions = true};
}
/// Adam's, with its preconditioner frozen.
inline LinearRule running_mean_rule(double beta1) {
  return {.momentum = beta1, .dampening = beta1, .preconditioned = true};
}

/// A mini-batch so late that learning rates are no longer annealed.
inline constexpr int kLate = 1'000'000;

inline Recurrence recurrence_of(const std::string& scheme, const std::string& options, int stages,
                                int microbatches = 1, const SteadyStateOptions& how = {}) {
  const SchemeReading reading(scheme, options);
  reading.problems.throw_if_any();
  const auto make = [&](int minibatches) {
    PipelineShape shape{.stages = stages,
                        .microbatches = microbatches,
                        .minibatches = minibatches,
                        .first_minibatch = kLate};
    shape.placement = reading.scheme->placement(stages);
    return reading.scheme->schedule(shape);
  };
  return steady_recurrence(make, how);
}

/// One stage with a delay of so many updates.
inline Dynamics delayed(int delay, const LinearRule& rule) {
  return {.recurrence = recurrence_of("delayed_sgd", concat("{delay: ", delay, "}"), 1),
          .rule = rule};
}

}  // namespace pipewright
