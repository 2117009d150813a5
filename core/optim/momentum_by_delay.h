// SPDX-License-Identifier: Apache-2.0
/// The option `momentum_by_delay`, as AsyncPP (Ajanthan et al., 2025) has it in its authors' code:
/// a stage whose gradients are τ updates late, of P stages, has the momentum
///   μ + min(τ, P)·(`momentum_by_delay` − μ)/P
/// for its steps and its predictions.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "core/base/text.h"
#include "core/config/options.h"
#include "core/optim/optimizer.h"

namespace pipewright {

/// The base of optimizers that have it. `Own` is the optimizer itself, and own_momentum() returns
/// its momentum, to be changed.
template <class Own>
class MomentumByDelay : public Optimizer {
 public:
  /// A copy of the optimizer with the momentum of a stage; null if all stages have the same.
  std::unique_ptr<Optimizer> of_stage(int delay, int stages) const override {
    if (most_ == 0) return nullptr;
    auto own = std::make_unique<Own>(static_cast<const Own&>(*this));
    double& momentum = own->own_momentum();
    momentum += std::min(delay, stages) * (most_ - momentum) / stages;
    return own;
  }

 protected:
  using Optimizer::Optimizer;

  /// Reads the option. `momentum` is the value of the option `name`, for messages.
  void read_by_delay(Options& options, const std::string& name, double momentum) {
    const Value most = options.any(
        "momentum_by_delay", Value::of("none"),
        concat("A number above 0 and below 1: a stage whose gradients are τ updates late, in a "
               "pipeline of P stages, has the momentum μ + min(τ, P)·(this − μ)/P, where μ is ",
               name, ". none: all stages have μ."));
    if (most.is(Value::Kind::Text) && most.text == "none") return;
    if (!most.is(Value::Kind::Number) || most.number <= 0 || most.number >= 1)
      options.problem("momentum_by_delay", concat("is ", most.shown(),
                                                  "; expected a number above 0 and below 1, or "
                                                  "none"));
    else if (momentum == 0)
      options.problem("momentum_by_delay",
                      concat("is ", most.shown(), ", which needs ", name, " above 0"));
    else
      most_ = most.number;
  }

 private:
  double most_ = 0;  ///< 0: none
};

}  // namespace pipewright
