// SPDX-License-Identifier: Apache-2.0
/// Softmax cross-entropy with label smoothing ε over K classes, as PyTorch defines it:
///   target q_c = (1 − ε)·[c = y] + ε/K,   loss of a row = −Σ_c q_c log p_c,   ∂/∂logits = p − q.
/// Binary cross-entropy of K labels, of which the one with the row's number holds, y_c = [c = y]:
///   loss of a row = 1/K Σ_c (log(1 + e^z_c) − y_c z_c),   ∂/∂z_c = (σ(z_c) − y_c)/K.
#pragma once

#include "tensors.h"

#include <span>

namespace oracle {

struct Loss {
  double value = 0;  // Σ over the rows given, divided by `samples`
  Matrix gradient;   // of that value, with respect to the logits
};

/// `samples` is the size of the whole mini-batch, of which `logits` (rows × K) may be a
/// micro-batch: values and gradients of the micro-batches then add up to those of the mean over the
/// mini-batch.
Loss cross_entropy(const Matrix& logits, std::span<const int> labels, double smoothing,
                   Eigen::Index samples);
Loss binary_cross_entropy(const Matrix& logits, std::span<const int> labels, Eigen::Index samples);

}  // namespace oracle
