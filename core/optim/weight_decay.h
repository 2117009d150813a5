// SPDX-License-Identifier: Apache-2.0
/// The options `weight_decay` and `no_decay`, which the built-in optimizers share.
#pragma once

#include <string>

#include "core/config/options.h"
#include "core/optim/optimizer.h"

namespace pipewright {

class WeightDecay {
 public:
  WeightDecay(Options& options, double fallback, const std::string& help);

  /// The λ of a parameter.
  double of(const FlatLayout::Entry& parameter) const { return excludes(parameter) ? 0 : lambda_; }
  /// The λ of the parameters that decay.
  double most() const { return lambda_; }

 private:
  bool excludes(const FlatLayout::Entry& parameter) const;

  double lambda_;
  bool of_biases_ = true, of_norms_ = true;
};

}  // namespace pipewright
