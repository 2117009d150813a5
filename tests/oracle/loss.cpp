// SPDX-License-Identifier: Apache-2.0
#include "loss.h"

#include <algorithm>
#include <cmath>

namespace oracle {

Loss cross_entropy(const Matrix& logits, std::span<const int> labels, double smoothing,
                   Eigen::Index samples) {
  const double classes = static_cast<double>(logits.cols());
  const double share = 1.0 / static_cast<double>(samples);
  Loss loss;
  loss.gradient.resize(logits.rows(), logits.cols());
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    const double top = logits.row(row).maxCoeff();
    const double log_sum = top + std::log((logits.row(row).array() - top).exp().sum());
    for (Eigen::Index c = 0; c < logits.cols(); ++c) {
      const double log_p = logits(row, c) - log_sum;
      const bool hit = c == labels[static_cast<std::size_t>(row)];
      const double target = (hit ? 1.0 - smoothing : 0.0) + smoothing / classes;
      loss.value -= share * target * log_p;
      loss.gradient(row, c) = share * (std::exp(log_p) - target);
    }
  }
  return loss;
}

Loss binary_cross_entropy(const Matrix& logits, std::span<const int> labels, Eigen::Index samples) {
  const double share = 1.0 / static_cast<double>(samples * logits.cols());
  Loss loss;
  loss.gradient.resize(logits.rows(), logits.cols());
  for (Eigen::Index row = 0; row < logits.rows(); ++row)
    for (Eigen::Index c = 0; c < logits.cols(); ++c) {
      const double z = logits(row, c), y = c == labels[static_cast<std::size_t>(row)] ? 1.0 : 0.0;
      loss.value += share * (std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - y * z);
      loss.gradient(row, c) = share * (1.0 / (1.0 + std::exp(-z)) - y);
    }
  return loss;
}

}  // namespace oracle
