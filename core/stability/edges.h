// SPDX-License-Identifier: Apache-2.0
/// Edges of stability: the largest learning rates with which a schedule converges on a quadratic
/// loss. Small steps converge; the edge is the first learning rate at which they no longer do, even
/// if some larger one does again.
#pragma once

#include <functional>
#include <vector>

#include "core/schedule/linear_rule.h"
#include "core/stability/closed_loop.h"
#include "core/stability/recurrence.h"

namespace pipewright {

/// The numbers from which the edges of an experiment follow.
struct Dynamics {
  Recurrence recurrence;
  LinearRule rule;
  double lr = 0;           ///< with which weights decay
  double discrepancy = 0;  ///< LoopOptions::discrepancy
};

/// The largest stable learning rate × curvature of v ← βv + g, w ← w − lr·v with a gradient that is
/// τ ≥ 0 updates old, 0 ≤ β < 1. It is 2(1 + β) for τ = 0, 1 − β for τ = 1, and else
/// 2 sin(θ/2)·√(1 − 2β cos θ + β²) with the root θ in (0, π] of
/// (τ − ½)θ + atan2(sin θ, cos θ − β) = π/2: the characteristic polynomial
/// z^{τ−1}(z − 1)(z − β) + x has its first roots on the circle at e^{±iθ}. Without momentum it is
/// 2 sin(π/(4τ + 2)), lemma 1 of PipeMare (Yang et al., 2021).
double heavy_ball_edge(int delay, double momentum);

/// The largest stable learning rate × curvature of one stage, if no other stage has any curvature.
/// Closed forms where there are, else the first eigenvalue on the unit circle. 0 if no learning
/// rate is stable, as with a momentum of 1.
double edge_alone(const Dynamics& dynamics, int stage);

/// The largest stable learning rate of one stage with this curvature, if no other stage has any;
/// weights decay with it, and `lr` does not matter. Infinite if the curvature is not positive.
double largest_lr_alone(const Dynamics& dynamics, int stage, double curvature);

/// The largest stable learning rate of all stages together; weights decay with it, and `lr` does
/// not matter. The Hessian must be symmetric, positive semidefinite, with as many rows for each
/// stage as `blocks` says. `progress`, which may be empty, is called before each set of
/// eigenvalues.
double coupled_edge(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks = {},
                    const std::function<void()>& progress = {});

/// The rows of the matrix that spectral_radius() makes: the states and old versions of all weights.
int coupled_states(const Dynamics& dynamics, const Hessian& hessian, const Blocks& blocks = {});

/// The spectral radius of one period of all stages together with that learning rate: what distances
/// from the minimum are multiplied by in the long run.
double spectral_radius(const Dynamics& dynamics, const Hessian& hessian, double lr,
                       const Blocks& blocks = {});

/// τ′ = √(Σ Cₖ²τₖ² / Σ Cₖ²) with equal Cₖ: the delay of all stages that counts for the convergence
/// of asynchronous Adam (arXiv 2602.03515), where the Cₖ are sums of |Hessian| of a stage. τₖ is
/// the largest delay of a forward, delay_of().
double effective_delay(const Recurrence& recurrence);

}  // namespace pipewright
