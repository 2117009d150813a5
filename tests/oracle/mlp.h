// SPDX-License-Identifier: Apache-2.0
/// A run of consecutive Linear layers with explicit forward and backward.
///
/// Layer l of the run, for a batch of B rows (φ is its activation):
///   a_0 = x,   z_l = a_l W_lᵀ + 1 b_l,   a_{l+1} = φ(z_l),   output = a_L.
/// Backward with matrices V that may differ from the forward's W, given δ = ∂loss/∂a_L:
///   ε_l = δ_{l+1} ∘ φ'(z_l)      z_l and a_l are the forward's
///   ∂W_l = ε_lᵀ a_l,  ∂b_l = 1ᵀ ε_l
///   δ_l = ε_l V_l                the only place where backward weights enter
#pragma once

#include "tensors.h"

#include <span>
#include <vector>

namespace oracle {

enum class Activation { Relu, Tanh, Identity };

/// A run of layers, each given by its activation; the network's last layer and heads have Identity.
using Layers = std::vector<Activation>;

/// The values of a forward that its backward needs.
struct Trace {
  std::vector<Matrix> inputs;  // a_l, B × in
  std::vector<Matrix> sums;    // z_l, B × out
  Matrix output;
};

/// `parameters` holds weight (out × in) and bias (1 × out) of each layer of the run.
Trace forward(const Layers& layers, std::span<const Matrix> parameters, const Matrix& x);

/// Returns ∂loss/∂x and adds `scale` × the parameters' gradients to `gradients`, unless that is
/// empty.
Matrix backward(const Layers& layers, std::span<const Matrix> parameters, const Trace& trace,
                Matrix output_gradient, double scale, std::span<Matrix> gradients);

}  // namespace oracle
