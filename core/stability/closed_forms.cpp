// SPDX-License-Identifier: Apache-2.0
#include "core/stability/closed_forms.h"

#include <cmath>
#include <numbers>

namespace pipewright {

double heavy_ball_edge(int delay, double momentum) {
  constexpr double kPi = std::numbers::pi;
  if (delay == 0) return 2 * (1 + momentum);
  if (delay == 1) return 1 - momentum;
  if (momentum == 0) return 2 * std::sin(kPi / (4.0 * delay + 2));
  // The left side grows with θ, since the point (β, 0) is inside the circle.
  double low = 0, high = kPi;
  for (int i = 0; i < 60; ++i) {
    const double angle = (low + high) / 2;
    const double phase =
        (delay - 0.5) * angle + std::atan2(std::sin(angle), std::cos(angle) - momentum);
    (phase < kPi / 2 ? low : high) = angle;
  }
  return 2 * std::sin(low / 2) * std::sqrt(1 - 2 * momentum * std::cos(low) + momentum * momentum);
}

}  // namespace pipewright
