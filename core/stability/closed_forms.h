// SPDX-License-Identifier: Apache-2.0
/// The edge of stability in closed form, where there is one.
#pragma once

namespace pipewright {

/// The largest stable learning rate × curvature of v ← βv + g, w ← w − lr·v with a gradient that is
/// τ ≥ 0 updates old, 0 ≤ β < 1. It is 2(1 + β) for τ = 0, 1 − β for τ = 1, and else
/// 2 sin(θ/2)·√(1 − 2β cos θ + β²) with the root θ in (0, π] of
/// (τ − ½)θ + atan2(sin θ, cos θ − β) = π/2: the characteristic polynomial
/// z^{τ−1}(z − 1)(z − β) + x has its first roots on the circle at e^{±iθ}. Without momentum it is
/// 2 sin(π/(4τ + 2)), lemma 1 of PipeMare (Yang et al., 2021).
double heavy_ball_edge(int delay, double momentum);

}  // namespace pipewright
