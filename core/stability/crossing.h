// SPDX-License-Identifier: Apache-2.0
/// The smallest learning rate at which an eigenvalue of a period reaches the unit circle.
#pragma once

#include <complex>
#include <functional>

#include "core/stability/eigenvalues.h"

namespace pipewright {

/// A gain as a function of z.
struct CircleGain {
  std::function<SquareMatrix<std::complex<double>>(std::complex<double> z)> at;
  /// Whether it is certain, at less cost than that of eigenvalues, that none at z is larger than
  /// the bound and at most `turn` radians from the positive axis; empty: nothing is certain.
  std::function<bool(std::complex<double> z, double bound, double turn)> is_below = {};
  /// Called before eigenvalues are computed; may be empty.
  std::function<void()> progress = {};
};

/// The smallest x > 0 with det(1 − x·gain(e^{iθ})) = 0 for some angle θ in (0, π]; infinity if
/// there is none. It follows the eigenvalues of the gain along the circle, of which 1/x is one that
/// is real and positive there, on finer and finer grids until two of them agree to ten digits.
/// Angles at which all eigenvalues are smaller than what has been found are left out.
/// `delay` is the longest power of 1/z in the gain: phases turn so much faster than θ.
double first_crossing(const CircleGain& gain, int delay);

}  // namespace pipewright
