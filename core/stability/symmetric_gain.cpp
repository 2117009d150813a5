// SPDX-License-Identifier: Apache-2.0
#include "core/stability/symmetric_gain.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

using Complex = std::complex<double>;
using Factor =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

double largest_at(const std::vector<Complex>& d, double t) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const Complex& each : d) largest = std::max(largest, each.real() + t * each.imag());
  return largest;
}

/// The t between −limit and limit at which the largest of Re d + t·Im d is smallest.
double best_slope(const std::vector<Complex>& d, double limit) {
  constexpr int kHalvings = 30;
  double low = -limit, high = limit;
  for (int i = 0; i < kHalvings; ++i) {
    const double t = (low + high) / 2;
    const Complex& most = *std::ranges::max_element(
        d, {}, [&](const Complex& each) { return each.real() + t * each.imag(); });
    (most.imag() < 0 ? low : high) = t;
  }
  return (low + high) / 2;
}

}  // namespace

SymmetricGain::SymmetricGain(const Hessian& hessian, std::vector<int> column)
    : column_(std::move(column)) {
  const auto size = static_cast<int>(hessian.size());
  const SymmetricEigenvalues spectrum = symmetric_eigenvalues(symmetric_part(hessian));
  largest_ = std::max(0.0, spectrum.values.back());
  const double rounding = size * std::numeric_limits<double>::epsilon() * largest_;
  for (int i = 0; i < size; ++i) {
    if (spectrum.values[as_size(i)] <= rounding) continue;
    ++rank_;
    for (int c = 0; c < size; ++c)
      factor_.push_back(std::sqrt(spectrum.values[as_size(i)]) * spectrum.vectors.at(c, i));
  }
}

SquareMatrix<Complex> SymmetricGain::at(const std::vector<Complex>& d) const {
  const Factor s(factor_.data(), rank_, std::ssize(column_));
  Eigen::VectorXd real(s.cols()), imaginary(s.cols());
  for (Eigen::Index i = 0; i < s.cols(); ++i) {
    const Complex& own = d[as_size(column_[as_size(static_cast<int>(i))])];
    real(i) = own.real();
    imaginary(i) = own.imag();
  }
  const Eigen::MatrixXd re = s * real.asDiagonal() * s.transpose(),
                        im = s * imaginary.asDiagonal() * s.transpose();
  SquareMatrix<Complex> gain(rank_);
  for (int row = 0; row < rank_; ++row)
    for (int c = 0; c < rank_; ++c) gain.at(row, c) = {re(row, c), im(row, c)};
  return gain;
}

bool SymmetricGain::is_below(const std::vector<Complex>& d, double bound, double turn) const {
  constexpr double kSteepest = 0.8;  // of the slope at which nothing could be said any more
  const double limit = kSteepest / std::tan(turn), best = best_slope(d, limit);
  const Factor s(factor_.data(), rank_, std::ssize(column_));
  for (const double t : {best, 0.0, best / 2}) {
    const double allowed = bound * (std::cos(turn) - std::abs(t) * std::sin(turn));
    if (largest_at(d, t) * largest_ <= allowed) return true;
    if (bound == 0) continue;
    Eigen::VectorXd diagonal(s.cols());
    for (Eigen::Index i = 0; i < s.cols(); ++i) {
      const Complex& own = d[as_size(column_[as_size(static_cast<int>(i))])];
      diagonal(i) = own.real() + t * own.imag();
    }
    const Eigen::MatrixXd rest = allowed * Eigen::MatrixXd::Identity(rank_, rank_) -
                                 s * diagonal.asDiagonal() * s.transpose();
    if (Eigen::LLT<Eigen::MatrixXd>(rest).info() == Eigen::Success) return true;
  }
  return false;
}

}  // namespace pipewright
