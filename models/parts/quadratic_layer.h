// SPDX-License-Identifier: Apache-2.0
/// The layers of the model `quadratic`.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

struct QuadraticLayerOptions {
  std::int64_t rows = 1;            ///< n: values of the activation
  std::int64_t width = 1;           ///< d: parameters of this layer
  std::vector<double> columns;      ///< A_k [n, d], row by row
  double discrepancy = 0;           ///< Δ as a number; one of the two is 0
  double relative_discrepancy = 0;  ///< Δ in units of the layer's own curvature A_kᵀA_k
  bool last = false;
  Initializer start;
};
/// s ← s + A_k·weight for s [batch, n] and weight [d]; the last layer then gives ½|s|², [batch, 1].
///
/// With Δ ≠ 0 a second tensor c [batch, 1], which is 0, goes through all layers and is added to the
/// last one's output. Its gradient has the sum g, the part that the samples have in the loss. The
/// backward adds g·Δ·(w_f − w_b) to the gradient of the weight: w_f is the weight that the forward
/// read, w_b the one that is there in the backward. A relative Δ adds g·Δ·A_kᵀA_k·(w_f − w_b).
LayerPtr quadratic_layer(QuadraticLayerOptions options);

}  // namespace pipewright
