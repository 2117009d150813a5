// SPDX-License-Identifier: Apache-2.0
/// Matrices of quadratic forms f(w) = ½ wᵀHw: factors A with AᵀA = H, so that f(w) = ½|Aw|².
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// The square matrix of a form, row by row.
struct FormMatrix {
  explicit FormMatrix(std::size_t size) : size(size), values(size * size) {}
  double& at(std::size_t row, std::size_t column) { return values[row * size + column]; }
  double at(std::size_t row, std::size_t column) const { return values[row * size + column]; }

  std::size_t size;
  std::vector<double> values;
};

/// An orthogonal matrix, uniformly distributed (Haar measure): the rows are independent normal
/// vectors of the stream (seed, "quadratic.basis"), made orthonormal one after another.
FormMatrix random_orthogonal(std::size_t size, std::uint64_t seed);

/// A = Λ^½ Q for non-negative eigenvalues: AᵀA = QᵀΛQ, whose eigenvectors are the rows of Q.
/// Without `basis`, Q is the identity.
FormMatrix form_of_eigenvalues(const std::vector<double>& eigenvalues,
                               const std::optional<FormMatrix>& basis = {});

/// A with AᵀA = H for a symmetric H, by Cholesky's method with pivots (Higham, Accuracy and
/// Stability of Numerical Algorithms, section 10.3): each row of A takes one pivot of what remains.
/// Empty if H is not positive semidefinite, up to the rounding of the method.
std::optional<FormMatrix> form_of_hessian(FormMatrix hessian);

/// Reads the options `spectrum`, `hessian`, `coupled` and `seed`. Returns A, AᵀA = H, with `size`
/// rows and columns; some other one if there is a problem, which is recorded.
FormMatrix read_quadratic_form(Options& options, std::size_t size);

}  // namespace pipewright
