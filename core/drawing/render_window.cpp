// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_window.h"

#include <algorithm>
#include <limits>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

/// First start and last end of the actions of mini-batches [first, end) that start at all.
RenderWindow span_of(const Schedule& schedule, const SlotTimes& times, int first, int end) {
  RenderWindow span{std::numeric_limits<int>::max(), 0};
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Action& action = schedule.workers[worker][i];
      const int start = times.start[worker][i];
      if (start == kNeverStarts || action.minibatch < first || action.minibatch >= end) continue;
      span.from = std::min(span.from, start);
      span.to = std::max(span.to, start + slots_of(action.kind));
    }
  }
  if (span.from > span.to) span.from = span.to;
  return span;
}

}  // namespace

RenderWindow render_window(const Schedule& schedule, const SlotTimes& times, int minibatches,
                           const ActionPlace* culprit) {
  const RenderWindow whole{0, times.makespan};
  if (minibatches <= 0 || schedule.shape.minibatches <= minibatches) return whole;
  if (culprit == nullptr || !exists(schedule, *culprit))
    return {0, span_of(schedule, times, 0, minibatches).to};
  const auto [worker, position] = *culprit;
  const int around = action_at(schedule, *culprit).minibatch;
  const int first = std::max(0, around - minibatches / 2);
  RenderWindow window = span_of(schedule, times, first, first + minibatches);
  if (times.start[as_size(worker)][as_size(position)] == kNeverStarts) window.to = times.makespan;
  return window;
}

bool exists(const Schedule& schedule, const ActionPlace& place) {
  return place.first >= 0 && as_size(place.first) < schedule.workers.size() && place.second >= 0 &&
         as_size(place.second) < schedule.workers[as_size(place.first)].size();
}

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
