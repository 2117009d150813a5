// SPDX-License-Identifier: Apache-2.0
#include "core/base/normal_distribution.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// Approximates Φ⁻¹(p) for p ≤ ½ within 5e-4 (Abramowitz & Stegun, 26.2.23).
double rough_quantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  return (2.515517 + t * (0.802853 + t * 0.010328)) /
             (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
         t;
}

/// Φ⁻¹(p) for p ≤ ½: there the lower tail loses no precision.
double lower_quantile(double p) {
  constexpr int kSteps = 2;  // Halley converges cubically: error 5e-4, 1e-10, rounding
  double x = rough_quantile(p);
  for (int step = 0; step < kSteps; ++step) {
    const double root = std::exp(x * x / 4);  // its square may overflow, so it is applied twice
    const double newton = (normal_cdf(x) - p) * root * std::sqrt(2 * std::numbers::pi) * root;
    x -= newton / (1 + x * newton / 2);
  }
  return x;
}

}  // namespace

double normal_cdf(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

double normal_quantile(double p) {
  PIPEWRIGHT_CHECK(p >= 0 && p <= 1, "a probability of ", p);
  if (p == 0) return -std::numeric_limits<double>::infinity();
  return p > 0.5 ? -normal_quantile(1 - p) : lower_quantile(p);
}

}  // namespace pipewright
