// SPDX-License-Identifier: Apache-2.0
/// Estimates how long the runs of a sweep take on this machine's processor, before any has begun.
#pragma once

#include <optional>
#include <vector>

#include "core/cost/profile.h"
#include "core/training/plan.h"

namespace pipewright {

/// From the times of layers, measured here one after another as the executor runs them, and the
/// number of micro-batches, updates and evaluations of each run: on cores that nothing else uses.
/// Data and messages are not in it.
class SweepDuration {
 public:
  /// Adds runs that differ only in their seed. Their layers are timed for about half a second,
  /// unless those of runs before are the same; a micro-batch that takes too long, or comes too
  /// late, is only counted. Throws Error{Experiment} if a layer refuses its inputs.
  void add(const Plan& plan, std::size_t runs);

  /// Processor seconds of all runs. Those that were only counted take what their operations would
  /// take at the rate of the others. None if nothing was timed, or a run uses another device.
  std::optional<double> seconds() const;
  /// Operations of all runs; a multiply-add counts 2.
  double operations() const { return timed_.operations + counted_.operations; }

 private:
  struct Work {
    double seconds = 0, operations = 0;
  };

  struct Measured {
    Profile profile;
    double share = 1;  ///< of a core that it was given
  };

  const Measured& measured(const Experiment& experiment);

  std::vector<Measured> measured_;
  double spent_ = 0;  ///< s, on timing layers
  Work timed_, counted_;
  bool elsewhere_ = false;
};

}  // namespace pipewright
