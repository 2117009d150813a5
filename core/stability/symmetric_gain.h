// SPDX-License-Identifier: Apache-2.0
/// The gain H·D of a symmetric Hessian H and a diagonal D: every gradient reads each weight in the
/// same way, whichever stage it belongs to, as in all schemes whose backward reads the weights of
/// its forward. With H = SᵀS its eigenvalues other than 0 are those of S·D·Sᵀ, which is as small as
/// the rank of H and symmetric.
#pragma once

#include <complex>
#include <vector>

#include "core/stability/eigenvalues.h"
#include "core/stability/hessian.h"

namespace pipewright {

class SymmetricGain {
 public:
  /// Requires a symmetric, positive semidefinite Hessian. `column` is the stage of each row.
  SymmetricGain(const Hessian& hessian, std::vector<int> column);

  /// S·D·Sᵀ [rank × rank] with D given for each stage.
  SquareMatrix<std::complex<double>> at(const std::vector<std::complex<double>>& d) const;

  /// Whether no eigenvalue is larger than `bound` ≥ 0 and at most `turn` radians from the positive
  /// axis. An eigenvalue λ with eigenvector v of length 1 is v*·S·D·Sᵀ·v, so that Re λ + t·Im λ is
  /// at most the largest eigenvalue of the symmetric matrix S·(Re D + t·Im D)·Sᵀ, for every real t;
  /// and near the axis Re λ + t·Im λ ≥ |λ|·(cos turn − |t|·sin turn). True is proved, with some t;
  /// false is not known.
  bool is_below(const std::vector<std::complex<double>>& d, double bound, double turn) const;

 private:
  int rank_ = 0;
  std::vector<double> factor_;  ///< S, row by row
  std::vector<int> column_;
  double largest_ = 0;  ///< eigenvalue of H
};

}  // namespace pipewright
