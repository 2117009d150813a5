// SPDX-License-Identifier: Apache-2.0
/// The learning rate over time, a function of the mini-batch's own number and so the same at every
/// stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// The rate at epoch or step t (from 0) of T, with base rate lr and γ gamma, is lr times the
/// factor, or the value, of its rule:
///   constant; step: γ^⌊t/size⌋; multistep: γ^(milestones ≤ t);
///   poly: end + (lr−end)(1−t/T)^power; cosine: end + (lr−end)(1+cos(πt/T))/2; linear: lr +
///   (end−lr)t/T; constant_then_linear: lr until t = cT, then lr + (end−lr)(t−cT)/(T−cT).
/// Warm-up multiplies the rate by start + (1−start)·t/length while t < length; of a `share`, the
/// length is ⌈share·T⌉. With `then: begin` the last four rules use max(t − length, 0) for t and T −
/// length for T.
class LrSchedule {
 public:
  LrSchedule() = default;
  explicit LrSchedule(Options& options);

  bool per_step() const { return per_step_; }
  /// The rate at t of T with base rate `lr`.
  double at(double lr, std::int64_t t, std::int64_t total) const;

 private:
  double decayed(double lr, std::int64_t t, std::int64_t total) const;

  std::string name_ = "constant";
  bool per_step_ = false;
  std::int64_t size_ = 30;
  double gamma_ = 0.1;
  std::vector<std::int64_t> milestones_;
  double power_ = 1;
  double constant_ = 0.5;
  double end_lr_ = 0;
  std::int64_t warmup_length_ = 0;
  double warmup_share_ = 0;
  double warmup_start_ = 0;
  bool decays_after_warmup_ = false;
};

}  // namespace pipewright
