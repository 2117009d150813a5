// SPDX-License-Identifier: Apache-2.0
/// The oracle's tensors: float64 matrices, and lists of them with the shapes of a stage's
/// parameters.
#pragma once

#include <Eigen/Core>

#include <cstddef>
#include <vector>

namespace oracle {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The parameters of a stage in the order weight, bias, weight, bias, … (a bias is a 1 × out
/// matrix), the pair of an auxiliary head last; or a gradient, a velocity, a moment of the same
/// shapes.
using Tensors = std::vector<Matrix>;

inline Tensors zeros_like(const Tensors& tensors) {
  Tensors zeros;
  for (const Matrix& tensor : tensors) zeros.push_back(Matrix::Zero(tensor.rows(), tensor.cols()));
  return zeros;
}

/// a·x + b·y, tensor by tensor.
inline Tensors combine(double a, const Tensors& x, double b, const Tensors& y) {
  Tensors sum;
  for (std::size_t i = 0; i < x.size(); ++i) sum.emplace_back(a * x[i] + b * y[i]);
  return sum;
}

}  // namespace oracle
