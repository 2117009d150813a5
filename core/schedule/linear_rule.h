// SPDX-License-Identifier: Apache-2.0
/// An optimizer as a linear recurrence: which past gradients are in the weights, besides which
/// version they are. On a quadratic loss whose
/// gradient is g, an update is
///   g' = g + l2·w;   v ← momentum·v + fresh()·g';   w ← (1 − lr·decoupled)·w − lr·(of_velocity·v
///   + of_gradient·g').
/// SGD is that exactly. Adam, AdamW, NAdam and RMSprop are that once their preconditioner no longer
/// changes and bias corrections are over; their curvature is that of P^{-1/2}HP^{-1/2}, where P is
/// the diagonal matrix by which they divide (Cohen et al., 2022, arXiv 2207.14484).
#pragma once

namespace pipewright {

struct LinearRule {
  double momentum = 0;
  double dampening = 0;    ///< Adam: β₁, whose running mean is v ← β₁v + (1 − β₁)g'
  double of_velocity = 1;  ///< Nesterov: momentum
  double of_gradient = 0;  ///< Nesterov: 1
  double l2 = 0;           ///< weight decay that is added to the gradient
  double decoupled = 0;    ///< AdamW's weight decay
  bool preconditioned = false;  ///< curvature means that of P^{-1/2}HP^{-1/2}
  /// Whether PredictionRule::Lookahead and Geometric are other predictions than Optimizer's; only
  /// SGD knows them.
  bool knows_all_predictions = false;
  bool knows_geometric = false;  ///< whether the latter is another one, as of Adam

  bool knows(bool lookahead) const {
    return knows_all_predictions || (knows_geometric && !lookahead);
  }
  /// The factor with which a gradient enters v; without momentum v is the gradient.
  double fresh() const { return momentum == 0 ? 1 : 1 - dampening; }
  bool operator==(const LinearRule&) const = default;
};

}  // namespace pipewright
