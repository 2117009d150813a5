// SPDX-License-Identifier: Apache-2.0
/// The version of its stage's weights that each pass reads, resolved from the order of actions on
/// its worker. Staleness, the copies that a stage must hold, and when each may be freed follow from
/// it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Names one copy of a stage's weights: equal keys are the same tensor. A key with ahead ≠ 0 is a
/// prediction. It must be used for the first time while its version is the latest, and is kept
/// until its last use.
struct WeightKey {
  int version = 0;
  int ahead = 0;
  int rule = 0;
  auto operator<=>(const WeightKey&) const = default;
};

/// How one action uses its stage's weights. `key` is meaningful for passes only.
struct ActionWeights {
  WeightKey key;
  bool makes = false;     ///< first use of a prediction: compute it now
  bool in_place = false;  ///< Update: nobody reads the old version any more
  /// Update, with Schedule::updates_compare: the weights that the forwards of its gradient have
  /// read, if they are not the version that it is applied to.
  std::optional<WeightKey> read = {};
  int latest = 0;  ///< updates of this stage before this action
  /// Update: the version that it is applied to, minus the one that a forward of its gradient has
  /// read, predicted steps taken off, of the micro-batch for which that is the most; at least 0.
  /// Schedule::gradient_delay is added.
  int staleness = 0;
  std::vector<WeightKey> frees;  ///< not needed after this action (never the latest version)
};

struct StageVersions {
  int copies = 1;  ///< most parameter copies alive at once, predictions included
  /// Staleness in the steady state: the version that a gradient is applied to, minus the version
  /// that the pass reads, predicted steps included.
  int forward_staleness = 0;
  int backward_staleness = 0;
};

struct Versions {
  std::vector<std::vector<ActionWeights>> workers;  ///< parallel to Schedule::workers
  std::vector<std::vector<StageVersions>> stages;   ///< [stage][replica]
  std::vector<std::vector<int>> waiting;  ///< Schedule::waiting of the schedule that follows

  const ActionWeights& at(ActionPlace place) const {
    return workers[as_size(place.first)][as_size(place.second)];
  }
};

/// Thrown when a pass asks for weights that do not exist: a future version, or a prediction that
/// was not used while its version was the latest.
class MissingWeights : public Error {
 public:
  MissingWeights(const std::string& message, ActionPlace place)
      : Error(ErrorKind::Schedule, message,
              concat("worker ", place.first, ", action ", place.second)),
        place_(place) {}
  ActionPlace place() const { return place_; }

 private:
  ActionPlace place_;
};

/// Throws MissingWeights for the first action whose weights do not exist, and for the first update
/// that would have to compare its weights with several.
Versions resolve_versions(const Schedule& schedule, const PassIndex& index);

/// The kinds of predicted weights that a schedule asks for.
struct Predictions {
  bool any = false;           ///< some weights are predicted from the optimizer's state
  bool by_lookahead = false;  ///< some by Kind::Lookahead: the last gradient must be kept
  bool by_drift = false;      ///< some by Kind::Drift: the weights' drift must be kept
};
Predictions predictions_of(const Schedule& schedule);

/// Multiplies the learning rate of every update by factor(ActionWeights::staleness).
Schedule with_rates_by_staleness(Schedule schedule, const std::function<double(int)>& factor);

}  // namespace pipewright
