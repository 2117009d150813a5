// SPDX-License-Identifier: Apache-2.0
/// When the gradients of a parameter of which two stages have a copy each cross
/// (PipelineShape::tied). A copy applies its own gradient with its own update, and the other one's
/// with the first update, of the same mini-batch or a later one, that the schedule puts behind the
/// pass which completes that gradient. The schedule's order is meant, in which passes wait for each
/// other, and not the time that they take: so it is known before, and nobody waits longer than for
/// the message. A gradient that no update can apply any more does not cross; when the pipeline has
/// been drained the copies are made equal.
#pragma once

#include <map>
#include <vector>

#include "core/schedule/action_place.h"

namespace pipewright {

struct ProvedSchedule;

class LateGradients {
 public:
  explicit LateGradients(const ProvedSchedule& proved);

  /// Whether the gradient of the stage's own passes crosses when this one has ended.
  bool gives(ActionPlace pass) const { return taker_.contains(pass); }
  /// The passes whose gradients the stage adds before this update, or before the sum over replicas
  /// that precedes it, in the order in which they end.
  const std::vector<ActionPlace>& givers(ActionPlace update) const;
  /// By how many mini-batches the copy of stage `to` applies the other's gradients later than its
  /// own, at most.
  int lag(int to) const;

 private:
  void join(const ProvedSchedule& proved, int from, int to);

  std::map<ActionPlace, ActionPlace> taker_;
  std::map<ActionPlace, std::vector<ActionPlace>> givers_;
  std::map<int, int> lag_;
};

}  // namespace pipewright
