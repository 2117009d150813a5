// SPDX-License-Identifier: Apache-2.0
/// How long an action occupies its worker's device.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/schedule/prove.h"
#include "core/simulation/hardware.h"

namespace pipewright {

/// Seconds of the actions of a schedule, of which it keeps references. The schedule's versions say
/// which actions make a prediction, and which updates a new version.
class ActionSeconds {
 public:
  ActionSeconds(const ProvedSchedule& proved, std::span<const StageCost> costs,
                const Hardware& hardware);

  /// Of the action at this position of a worker, by itself, with its work on versions of weights.
  double of_action(int worker, std::size_t position) const;
  /// Of the fused pair whose forward is at this position.
  double of_pair(int worker, std::size_t position) const;
  /// Seconds of encoding and decoding a reduction on the worker's device.
  double of_reduction(int worker, int stage) const;
  /// Whether the stage before needs the gradient that a backward can make of its input.
  bool sends_gradient(const Action& action) const;

 private:
  double of_kind(int stage, ActionKind kind) const;
  double on_device(int worker, std::size_t position, double seconds) const;
  double of_versions(int worker, std::size_t position) const;
  bool update_predicts(int worker, std::size_t position) const;
  double jitter(int worker, std::size_t position) const;

  static constexpr std::size_t kKinds = 16;
  const Schedule& schedule_;
  const PassSlots& slots_;
  const std::span<const StageCost> costs_;
  const Versions& versions_;
  const Hardware& hardware_;
  std::vector<std::array<double, kKinds>> seconds_;  ///< [stage][kind], as in the profile
  std::vector<bool> versions_cost_;                  ///< [stage]: whether versions take time
  std::vector<double> factors_;                      ///< per worker
};

}  // namespace pipewright
