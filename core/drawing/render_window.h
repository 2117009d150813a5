// SPDX-License-Identifier: Apache-2.0
/// The part of a schedule that a drawing shows: of its time, and of its workers, of which equal
/// replicas are drawn once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"
#include "core/schedule/slots.h"

namespace pipewright {

/// Slots [from, to). All actions of these slots are drawn, whichever mini-batch they belong to, and
/// those that go on beyond an end are drawn whole, so that a cut never looks like a drain.
struct RenderWindow {
  int from = 0;
  int to = 0;
};

/// The window from the start until `minibatches` are done (0: all); with a culprit, so many
/// mini-batches around it.
RenderWindow render_window(const Schedule& schedule, const SlotTimes& times, int minibatches,
                           const ActionPlace* culprit = nullptr);

/// Whether there is an action at this place of the schedule.
bool exists(const Schedule& schedule, const ActionPlace& place);

/// The workers of the first replica, and of the others those that do something else. All workers
/// where replicas share some.
class RenderRows {
 public:
  /// Whether the row of a worker would look like that of its twin in the first replica.
  using Same = std::function<bool(std::size_t worker, std::size_t twin)>;

  RenderRows(const Schedule& schedule, const Same& same);
  /// Workers are alike whose actions are equal but for the replica, and `same`.
  static RenderRows of_equal_actions(const Schedule& schedule, const Same& same);

  const std::vector<std::size_t>& workers() const { return workers_; }
  std::size_t size() const { return workers_.size(); }
  std::optional<std::size_t> row_of(std::size_t worker) const;
  /// "and 12 workers like these, of further replicas", or "" if all are drawn.
  std::string rest() const;

 private:
  std::size_t all_;
  std::vector<std::size_t> workers_;
};

}  // namespace pipewright
