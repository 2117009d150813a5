// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/pauses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/as_size.h"
#include "core/runtime/cursor.h"

namespace pipewright {
namespace {

/// Where the actions of a program lie in its execution order.
struct Places {
  std::vector<std::int64_t> last;    ///< behind the last action of each mini-batch
  std::vector<std::int64_t> update;  ///< behind its last update
  /// First and last reduction of a stage's gradients of a mini-batch.
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> reductions;
};

Places places_of(const Program& program) {
  Places places{.last = std::vector<std::int64_t>(as_size(program.minibatches()), 0),
                .update = std::vector<std::int64_t>(as_size(program.minibatches()), 0)};
  std::vector<Cursor> cursors;
  for (int worker = 0; worker < static_cast<int>(program.workers.size()); ++worker)
    cursors.emplace_back(program, worker);
  for (std::int64_t i = 0; i < program.actions; ++i) {
    const Action& action = cursors[as_size(worker_at(program, i))].next().action;
    places.last[as_size(action.minibatch)] = i + 1;
    if (action.kind == ActionKind::Update) places.update[as_size(action.minibatch)] = i + 1;
    if (action.kind != ActionKind::Reduce) continue;
    const auto [at, first] =
        places.reductions.try_emplace({action.stage, action.minibatch}, std::pair(i, i));
    if (!first) at->second.second = i;
  }
  for (std::vector<std::int64_t>* of : {&places.last, &places.update})
    for (std::size_t m = 1; m < of->size(); ++m) (*of)[m] = std::max((*of)[m], (*of)[m - 1]);
  return places;
}

/// The first place from `position` on between whose sides no reductions wait for each other.
std::int64_t between_reductions(const Places& places, std::int64_t position) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [key, range] : places.reductions)
      if (range.first < position && position <= range.second) {
        position = range.second + 1;
        moved = true;
      }
  }
  return position;
}

}  // namespace

int worker_at(const Program& program, std::int64_t position) {
  if (program.loop) {
    const Loop::Part& body = program.loop->order;
    const auto begin = static_cast<std::int64_t>(body.begin),
               size = static_cast<std::int64_t>(body.size()),
               end = begin + size * program.loop->rounds;
    if (position >= end)
      position -= end - begin - size;
    else if (position >= begin)
      position = begin + (position - begin) % size;
  }
  return program.order[static_cast<std::size_t>(position)].first;
}

std::vector<Pause> pauses_of(const Program& program, const std::vector<int>& minibatches) {
  std::vector<Pause> pauses;
  if (minibatches.empty()) return pauses;
  const Places places = places_of(program);
  std::vector<std::int64_t> performed(program.workers.size(), 0);
  std::int64_t position = 0;
  for (const int wanted : minibatches) {
    const std::int64_t place =
        std::max(position, between_reductions(places, places.last[as_size(wanted - 1)]));
    for (; position < place; ++position) ++performed[as_size(worker_at(program, position))];
    const auto updated = std::ranges::upper_bound(places.update, position);
    pauses.push_back({.minibatches = wanted,
                      .position = position,
                      .performed = performed,
                      .updated = static_cast<int>(updated - places.update.begin())});
  }
  return pauses;
}

}  // namespace pipewright
