// SPDX-License-Identifier: Apache-2.0
#include "mlp.h"

#include <utility>

namespace oracle {
namespace {

Matrix activate(Activation activation, const Matrix& z) {
  switch (activation) {
    case Activation::Relu: return z.cwiseMax(0.0);
    case Activation::Tanh: return z.array().tanh().matrix();
    case Activation::Identity: break;
  }
  return z;
}

/// φ'(z); 0 at the kink of relu, as PyTorch has it.
Matrix slope(Activation activation, const Matrix& z) {
  switch (activation) {
    case Activation::Relu: return (z.array() > 0.0).cast<double>().matrix();
    case Activation::Tanh: return (1.0 - z.array().tanh().square()).matrix();
    case Activation::Identity: break;
  }
  return Matrix::Ones(z.rows(), z.cols());
}

}  // namespace

Trace forward(const Layers& layers, std::span<const Matrix> parameters, const Matrix& x) {
  Trace trace;
  trace.output = x;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const Matrix& weight = parameters[2 * layer];
    const Matrix& bias = parameters[2 * layer + 1];
    trace.inputs.push_back(trace.output);
    Matrix z = trace.output * weight.transpose();
    z.rowwise() += bias.row(0);
    trace.output = activate(layers[layer], z);
    trace.sums.push_back(std::move(z));
  }
  return trace;
}

Matrix backward(const Layers& layers, std::span<const Matrix> parameters, const Trace& trace,
                Matrix output_gradient, double scale, std::span<Matrix> gradients) {
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const Matrix sum_gradient =
        output_gradient.cwiseProduct(slope(layers[layer], trace.sums[layer]));
    if (!gradients.empty()) {
      gradients[2 * layer] += scale * (sum_gradient.transpose() * trace.inputs[layer]);
      gradients[2 * layer + 1] += scale * sum_gradient.colwise().sum();
    }
    output_gradient = sum_gradient * parameters[2 * layer];
  }
  return output_gradient;
}

}  // namespace oracle
