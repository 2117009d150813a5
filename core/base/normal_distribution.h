// SPDX-License-Identifier: Apache-2.0
/// The standard normal distribution, to the last few bits of a double.
#pragma once

namespace pipewright {

/// Φ(x): the probability of a value below x.
double normal_cdf(double x);

/// Φ⁻¹(p): the x with Φ(x) = p; −∞ for p = 0, ∞ for p = 1. Requires 0 ≤ p ≤ 1.
double normal_quantile(double p);

}  // namespace pipewright
