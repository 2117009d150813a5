// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_window.h"

#include <algorithm>
#include <limits>

#include "core/base/as_size.h"

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

}  // namespace pipewright
