// SPDX-License-Identifier: Apache-2.0
/// What a scheme does on a quadratic problem, as a linear recurrence: from the definition of which
/// weights a stage reads, without a schedule, a stage or an optimizer of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <complex>
#include <vector>

namespace pipewright::test {

/// The weights that stage k reads in the forward of mini-batch i, in the steady state:
/// W_k(i − delay) predicted `ahead` steps further, by the last step (momentum's buffer).
struct Reading {
  int delay = 0;
  int ahead = 0;
};

/// SGD with momentum on f(w) = ½ wᵀHw, one parameter per stage:
///   W(i+1) = W(i) + β (W(i) − W(i−1)) − α g,   g_k = Σ_j H_kj Ŵ_j + Δ (Ŵ_k − B_k)
/// with Ŵ_j as `readings` says and B_k = W_k(i), or, with `drift_decays` γ_k of PipeMare,
/// B_k = W_k(i) − delay_k·δ_k(i), δ(i) = γ δ(i−1) + (1−γ) (W(i) − W(i−1)).
struct Recurrence {
  at::Tensor hessian;  ///< [stages, stages], float64
  std::vector<Reading> readings;
  double momentum = 0;
  double discrepancy = 0;
  std::vector<double> drift_decays = {};  ///< per stage; empty: no correction
};

/// The eigenvalues of the largest magnitude of one step at learning rate `lr`: with a magnitude
/// below 1 the weights go to 0, above 1 they grow by this factor per step. Where momentum alone
/// damps several oscillations, all have the same magnitude, and rounding would choose one.
std::vector<std::complex<double>> slowest_modes(const Recurrence& recurrence, double lr);
double slowest_magnitude(const Recurrence& recurrence, double lr);

/// The learning rate at which the slowest mode's magnitude passes 1 for the first time, by
/// bisection to the last bits.
double stability_edge(const Recurrence& recurrence);

}  // namespace pipewright::test
