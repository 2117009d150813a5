// SPDX-License-Identifier: Apache-2.0
// Staleness-aware learning rate (Zhang et al., 2016, arXiv 1511.05950): an update whose gradient
// was computed τ updates ago, predicted steps taken off, has the learning rate lr / max(1, τ)^ρ.
#include <algorithm>
#include <cmath>

#include "core/optim/gradient_rules/gradient_rule.h"

namespace pipewright {
namespace {

class StalenessRate final : public GradientRule {
 public:
  explicit StalenessRate(Options& options)
      : power_(options.number("power", 1, "Exponent ρ of the staleness; 0 changes nothing.",
                              kNotNegative)) {}

  bool changes_lr() const override { return power_ != 0; }
  double lr_factor(int staleness) const override {
    return std::pow(std::max(1, staleness), -power_);
  }

 private:
  double power_;
};

}  // namespace

PIPEWRIGHT_GRADIENT_RULE(staleness_lr, StalenessRate,
                         "Divides the learning rate of an update by its gradient's staleness.")

}  // namespace pipewright
