// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_rows.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {

RenderRows::RenderRows(const Schedule& schedule, const Same& same) : all_(schedule.workers.size()) {
  const bool folds = schedule.shape.replica_placement.empty();
  const std::size_t each = as_size(schedule.shape.workers_per_replica());
  for (std::size_t worker = 0; worker < all_; ++worker)
    if (!folds || worker < each || !same(worker, worker % each)) workers_.push_back(worker);
}

RenderRows RenderRows::of_equal_actions(const Schedule& schedule, const Same& same) {
  const auto equal = [](Action one, const Action& other) {
    one.replica = other.replica;
    return one == other;
  };
  return {schedule, [&](std::size_t worker, std::size_t twin) {
            return std::ranges::equal(schedule.workers[worker], schedule.workers[twin], equal) &&
                   same(worker, twin);
          }};
}

std::optional<std::size_t> RenderRows::row_of(std::size_t worker) const {
  const auto found = std::ranges::lower_bound(workers_, worker);
  if (found == workers_.end() || *found != worker) return std::nullopt;
  return static_cast<std::size_t>(found - workers_.begin());
}

std::string RenderRows::rest() const {
  if (workers_.size() == all_) return "";
  return concat("and ", counted(all_ - workers_.size(), "worker"),
                " like these, of further replicas");
}

}  // namespace pipewright
