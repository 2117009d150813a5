// SPDX-License-Identifier: Apache-2.0
/// Which workers a drawing has a row for: equal replicas are drawn once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

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
