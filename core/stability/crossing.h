// SPDX-License-Identifier: Apache-2.0
/// The smallest learning rate at which an eigenvalue of a period reaches the unit circle.
#pragma once

#include <complex>
#include <functional>

#include "core/stability/eigenvalues.h"

namespace pipewright {

/// The smallest x > 0 with det(1 − x·gain(e^{iθ})) = 0 for some angle θ in (0, π]; infinity if
/// there is none. It follows the eigenvalues of the gain along the circle, of which 1/x is one that
/// is real and positive there, on finer and finer grids until two of them agree to ten digits.
/// `delay` is the longest power of 1/z in the gain: phases turn so much faster than θ.
double first_crossing(
    const std::function<SquareMatrix<std::complex<double>>(std::complex<double>)>& gain, int delay);

}  // namespace pipewright
