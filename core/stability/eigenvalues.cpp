// SPDX-License-Identifier: Apache-2.0
#include "core/stability/eigenvalues.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

template <class Number>
auto as_eigen(const SquareMatrix<Number>& matrix) {
  using Dense = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Dense>(matrix.numbers.data(), matrix.size, matrix.size);
}

template <class Solver>
Eigenvalues values_of(const Solver& solver) {
  return {solver.eigenvalues().begin(), solver.eigenvalues().end()};
}

}  // namespace

Eigenvalues eigenvalues(const SquareMatrix<double>& matrix) {
  return values_of(Eigen::EigenSolver<Eigen::MatrixXd>(as_eigen(matrix), false));
}

Eigenvalues eigenvalues(const SquareMatrix<std::complex<double>>& matrix) {
  if (matrix.size == 1) return matrix.numbers;
  return values_of(Eigen::ComplexEigenSolver<Eigen::MatrixXcd>(as_eigen(matrix), false));
}

double spectral_radius(const SquareMatrix<double>& matrix) {
  double radius = 0;
  for (const std::complex<double>& each : eigenvalues(matrix))
    radius = std::max(radius, std::abs(each));
  return radius;
}

}  // namespace pipewright
