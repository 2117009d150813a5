// SPDX-License-Identifier: Apache-2.0
/// Eigenvalues of small dense matrices, without showing who computes them.
#pragma once

#include <complex>
#include <vector>

namespace pipewright {

/// A square matrix, row by row.
template <class Number>
struct SquareMatrix {
  int size = 0;
  std::vector<Number> numbers;

  explicit SquareMatrix(int n)
      : size(n), numbers(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {}
  Number& at(int row, int column) { return numbers[place(row, column)]; }
  const Number& at(int row, int column) const { return numbers[place(row, column)]; }

 private:
  std::size_t place(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(size) +
           static_cast<std::size_t>(column);
  }
};

using Eigenvalues = std::vector<std::complex<double>>;
Eigenvalues eigenvalues(const SquareMatrix<double>& matrix);
Eigenvalues eigenvalues(const SquareMatrix<std::complex<double>>& matrix);

/// The eigenvalue of a matrix that inverse iteration finds from a guess, and nearly always the
/// nearest; the guess itself if it does not converge. It costs a few solutions of linear equations.
std::complex<double> eigenvalue_near(const SquareMatrix<std::complex<double>>& matrix,
                                     std::complex<double> guess);

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.
struct SymmetricEigenvalues {
  std::vector<double> values;
  SquareMatrix<double> vectors;
};
SymmetricEigenvalues symmetric_eigenvalues(const SquareMatrix<double>& matrix);
/// The same of a matrix that has numbers only on its diagonal and, one fewer, beside it.
SymmetricEigenvalues tridiagonal_eigenvalues(const std::vector<double>& diagonal,
                                             const std::vector<double>& beside);

/// The largest magnitude of an eigenvalue.
double spectral_radius(const SquareMatrix<double>& matrix);

}  // namespace pipewright
