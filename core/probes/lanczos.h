// SPDX-License-Identifier: Apache-2.0
/// The largest eigenvalue of a symmetric matrix that is known by its products with vectors
/// (Lanczos, 1950; Golub and Van Loan, Matrix Computations, chapter 10).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace pipewright {

struct Eigenvalue {
  double value = 0;
  /// A bound: some eigenvalue of the matrix is at most so far from `value`, but for rounding.
  double error = 0;
  int products = 0;  ///< with the matrix
};

struct LanczosLimits {
  double tolerance = 1e-3;  ///< ends when error ≤ tolerance · |value|
  int products = 100;       ///< ends after so many
};

/// The largest eigenvalue, not the one of the largest magnitude. `product` maps a vector [n] to the
/// matrix times it, [n]. The start is drawn from (seed, "lanczos"). Keeps three vectors of these
/// options.
Eigenvalue largest_eigenvalue(const std::function<at::Tensor(const at::Tensor&)>& product,
                              std::int64_t n, const at::TensorOptions& options, std::uint64_t seed,
                              const LanczosLimits& limits);

}  // namespace pipewright
