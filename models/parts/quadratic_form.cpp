// SPDX-License-Identifier: Apache-2.0
#include "models/parts/quadratic_form.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/base/error.h"
#include "core/base/random.h"

namespace pipewright {
namespace {

std::span<double> row_of(FormMatrix& matrix, std::size_t row) {
  return std::span(matrix.values).subspan(row * matrix.size, matrix.size);
}

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Subtracts from a row what it has of the rows before it.
void make_orthogonal(FormMatrix& matrix, std::size_t row) {
  const std::span<double> own = row_of(matrix, row);
  for (std::size_t before = 0; before < row; ++before) {
    const std::span<const double> other = row_of(matrix, before);
    const double part = product(own, other);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] -= part * other[i];
  }
}

std::size_t largest_pivot(const FormMatrix& rest) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < rest.size; ++i)
    if (rest.at(i, i) > rest.at(largest, largest)) largest = i;
  return largest;
}

double largest_magnitude(const FormMatrix& matrix) {
  double largest = 0;
  for (const double value : matrix.values) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace

FormMatrix random_orthogonal(std::size_t size, std::uint64_t seed) {
  const RandomStream stream(seed, "quadratic.basis");
  FormMatrix basis(size);
  for (std::size_t i = 0; i < basis.values.size(); ++i) basis.values[i] = stream.normal(i);
  for (std::size_t row = 0; row < size; ++row) {
    make_orthogonal(basis, row);
    make_orthogonal(basis, row);  // a second time removes what rounding left over
    const std::span<double> own = row_of(basis, row);
    const double length = std::sqrt(product(own, own));
    for (double& value : own) value /= length;
  }
  return basis;
}

FormMatrix form_of_eigenvalues(const std::vector<double>& eigenvalues,
                               const std::optional<FormMatrix>& basis) {
  const std::size_t size = eigenvalues.size();
  PIPEWRIGHT_CHECK(!basis || basis->size == size, size, " eigenvalues and another basis");
  FormMatrix form(size);
  for (std::size_t row = 0; row < size; ++row) {
    const double root = std::sqrt(eigenvalues[row]);
    if (!basis) form.at(row, row) = root;
    for (std::size_t column = 0; basis && column < size; ++column)
      form.at(row, column) = root * basis->at(row, column);
  }
  return form;
}

std::optional<FormMatrix> form_of_hessian(FormMatrix hessian) {
  const std::size_t size = hessian.size;
  FormMatrix form(size);
  // What rounding may leave of a semidefinite matrix: a few units for each of `size` subtractions.
  const double rounding = 8 * static_cast<double>(size) * std::numeric_limits<double>::epsilon() *
                          largest_magnitude(hessian);
  for (std::size_t row = 0; row < size; ++row) {
    const std::size_t pivot = largest_pivot(hessian);
    if (hessian.at(pivot, pivot) <= rounding) break;
    const double root = std::sqrt(hessian.at(pivot, pivot));
    for (std::size_t i = 0; i < size; ++i) form.at(row, i) = hessian.at(pivot, i) / root;
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) hessian.at(i, j) -= form.at(row, i) * form.at(row, j);
  }
  if (largest_magnitude(hessian) > rounding) return std::nullopt;
  return form;
}

}  // namespace pipewright
