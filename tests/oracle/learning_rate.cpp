// SPDX-License-Identifier: Apache-2.0
#include "learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace oracle {
namespace {

double decayed(const LearningRateOptions& options, double lr, int t, double total) {
  const double end = options.end_lr;
  const double left = 1.0 - t / total;
  if (options.name == "step") return lr * std::pow(options.gamma, t / options.size);
  if (options.name == "multistep") {
    const auto passed = std::count_if(options.milestones.begin(), options.milestones.end(),
                                      [t](int milestone) { return milestone <= t; });
    return lr * std::pow(options.gamma, static_cast<double>(passed));
  }
  if (options.name == "poly") return end + (lr - end) * std::pow(left, options.power);
  if (options.name == "cosine")
    return end + (lr - end) * (1.0 + std::cos(std::numbers::pi * t / total)) / 2.0;
  if (options.name == "linear") return lr + (end - lr) * t / total;
  if (options.name == "constant_then_linear") {
    const double share_left = (1.0 - t / total) / (1.0 - options.constant);
    return share_left >= 1 ? lr : end + (lr - end) * share_left;
  }
  return lr;
}

}  // namespace

double learning_rate(const Experiment& experiment, int minibatch) {
  const LearningRateOptions& options = experiment.learning_rate;
  const bool per_step = options.per == "step";
  const int t = per_step ? minibatch : minibatch / experiment.minibatches();
  const double steps = experiment.steps_in_all();
  const double total = per_step ? steps : std::ceil(steps / experiment.minibatches());
  double lr = decayed(options, experiment.optimizer.lr, t, total);
  const double warm_up =
      options.warmup_share > 0 ? std::ceil(options.warmup_share * total) : options.warmup_length;
  if (t < warm_up) lr *= options.warmup_start + (1.0 - options.warmup_start) * t / warm_up;
  return lr;
}

}  // namespace oracle
