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

/// The largest stable learning rate × curvature of one stage, if no other stage has any curvature.
/// Closed forms where there are, else the first eigenvalue on the unit circle. 0 if no learning
/// rate is stable, as with a momentum of 1.
double edge_alone(const Dynamics& dynamics, int stage);

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
