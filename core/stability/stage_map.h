// SPDX-License-Identifier: Apache-2.0
/// The linear maps of which a recurrence is made: what an update does to the state of a stage, and
/// what a pass reads of it. A stage has one weight here, since a quadratic loss falls apart into
/// its curvature's directions.
#pragma once

#include <array>
#include <cstddef>

#include "core/schedule/linear_rule.h"
#include "core/stability/recurrence.h"

namespace pipewright {

/// The state of a stage: its weight w, its velocity as a distance lr·v, its last gradient with
/// weight decay as lr·g', and its drift δ (PredictionRule::Drift).
inline constexpr int kStateParts = 4;
inline constexpr std::size_t kWeight = 0, kVelocity = 1, kLastGradient = 2, kDrift = 3;
using StateRow = std::array<double, kStateParts>;

/// state ← map·state + of_gradient·lr·g
struct UpdateMap {
  std::array<StateRow, kStateParts> map{};
  StateRow of_gradient{};
};

/// The update with a learning rate of lr·scale; `drift_decay` is γ of δ ← γδ + (1−γ)(new w − w).
UpdateMap update_map(const LinearRule& rule, double lr, double scale, double drift_decay);

/// The weights that a pass computes with are row·state, of the state when the version was newest.
StateRow reading_row(const LinearRule& rule, double lr, const PredictionRule& prediction,
                     const Reading& reading);

/// γ of a stage's drift. 1, with which δ stays 0, if no pass of the stage reads it.
double drift_decay_of(const Recurrence& recurrence, int stage);

}  // namespace pipewright
