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

Eigenvalues values_of(const Eigen::MatrixXcd& matrix) {
  const Eigen::ComplexEigenSolver<Eigen::MatrixXcd> solver(matrix, false);
  return {solver.eigenvalues().begin(), solver.eigenvalues().end()};
}

using SymmetricSolver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

SymmetricEigenvalues values_and_vectors_of(const SymmetricSolver& solver) {
  const auto size = static_cast<int>(solver.eigenvalues().size());
  SymmetricEigenvalues found{.vectors = SquareMatrix<double>(size)};
  for (int i = 0; i < size; ++i) {
    found.values.push_back(solver.eigenvalues()(i));
    for (int row = 0; row < size; ++row) found.vectors.at(row, i) = solver.eigenvectors()(row, i);
  }
  return found;
}

}  // namespace

// Real matrices use the solver for complex ones, too. Eigen's own for them would halve a negligible
// time, but adds four seconds to compiling this file.
Eigenvalues eigenvalues(const SquareMatrix<double>& matrix) {
  return values_of(as_eigen(matrix).cast<std::complex<double>>());
}

Eigenvalues eigenvalues(const SquareMatrix<std::complex<double>>& matrix) {
  if (matrix.size == 1) return matrix.numbers;
  return values_of(as_eigen(matrix));
}

std::complex<double> eigenvalue_near(const SquareMatrix<std::complex<double>>& matrix,
                                     std::complex<double> guess) {
  constexpr int kSteps = 8;
  constexpr double kAgreement = 1e-14;
  const Eigen::MatrixXcd dense = as_eigen(matrix);
  const auto identity = Eigen::MatrixXcd::Identity(matrix.size, matrix.size);
  Eigen::VectorXcd vector(matrix.size);
  for (int i = 0; i < matrix.size; ++i) vector(i) = std::polar(1.0, 1.0 * i);  // no symmetry
  std::complex<double> value = guess;
  for (int step = 0; step < kSteps; ++step) {
    const Eigen::VectorXcd next = (dense - value * identity).partialPivLu().solve(vector);
    const double length = next.norm();
    if (!std::isfinite(length)) return value;  // the guess is an eigenvalue
    vector = next / length;
    const std::complex<double> better = vector.dot(dense * vector);
    if (step > 0 && std::abs(better - value) <= kAgreement * std::abs(better)) return better;
    value = better;
  }
  return guess;
}

SymmetricEigenvalues symmetric_eigenvalues(const SquareMatrix<double>& matrix) {
  return values_and_vectors_of(SymmetricSolver(as_eigen(matrix)));
}

SymmetricEigenvalues tridiagonal_eigenvalues(const std::vector<double>& diagonal,
                                             const std::vector<double>& beside) {
  const auto size = static_cast<Eigen::Index>(diagonal.size());
  const Eigen::Map<const Eigen::VectorXd> main(diagonal.data(), size),
      next(beside.data(), size - 1);
  SymmetricSolver solver;
  solver.computeFromTridiagonal(main, next);
  return values_and_vectors_of(solver);
}

double spectral_radius(const SquareMatrix<double>& matrix) {
  double radius = 0;
  for (const std::complex<double>& each : eigenvalues(matrix))
    radius = std::max(radius, std::abs(each));
  return radius;
}

}  // namespace pipewright
