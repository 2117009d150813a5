// SPDX-License-Identifier: Apache-2.0
#include "core/training/drain_points.h"

#include <algorithm>

#include "core/base/text.h"

namespace pipewright {
namespace {

std::int64_t next_multiple(std::int64_t of, std::int64_t after) {
  return (after / of + 1) * of;
}

}  // namespace

std::int64_t DrainPoints::next(std::int64_t position) const {
  std::int64_t point = minibatches;
  if (each_epoch) point = std::min(point, next_multiple(per_epoch, position));
  if (checkpoint_every > 0) point = std::min(point, next_multiple(checkpoint_every, position));
  return point;
}

std::int64_t DrainPoints::previous(std::int64_t position) const {
  const auto multiple_before = [&](std::int64_t of) { return (position - 1) / of * of; };
  return std::max(each_epoch ? multiple_before(per_epoch) : 0,
                  checkpoint_every > 0 ? multiple_before(checkpoint_every) : 0);
}

bool DrainPoints::checkpoint_at(std::int64_t position) const {
  return has_checkpoints() && position > 0 && position < minibatches &&
         position % checkpoint_every == 0;
}

bool DrainPoints::evaluates_at(std::int64_t position) const {
  return evaluate_every > 0 && position > 0 &&
         (position % evaluate_every == 0 || position == minibatches);
}

std::vector<int> DrainPoints::evaluations(std::int64_t first, std::int64_t end) const {
  std::vector<int> all;
  if (evaluate_every == 0) return all;
  for (std::int64_t at = next_multiple(evaluate_every, first); at < end; at += evaluate_every)
    all.push_back(static_cast<int>(at - first));
  return all;
}

bool DrainPoints::evaluates_within() const {
  const auto drains = [&](std::int64_t every) { return every > 0 && evaluate_every % every == 0; };
  return evaluate_every > 0 && evaluate_every < minibatches &&
         !drains(each_epoch ? per_epoch : 0) && !drains(checkpoint_every);
}

std::int64_t DrainPoints::longest() const {
  return minibatches == 0
             ? per_epoch
             : next(0);  // points are multiples of two numbers: no gap is longer than the first
}

std::string DrainPoints::position_text(std::int64_t position) const {
  const std::int64_t whole = position / per_epoch, more = position % per_epoch;
  return more == 0 ? concat("epoch ", whole) : concat("mini-batch ", more, " of epoch ", whole + 1);
}

std::string DrainPoints::remark() const {
  if (each_epoch || !has_checkpoints()) return {};
  return concat("train.drain is never, but each checkpoint drains the pipeline: every ",
                checkpoint_every == 1 ? "mini-batch" : concat(checkpoint_every, " mini-batches"),
                " (train.checkpoint)");
}

DrainPoints drain_points(const TrainOptions& train, int minibatches_per_epoch) {
  const std::int64_t per_epoch = minibatches_per_epoch;
  return {
      .minibatches = train.length(per_epoch),
      .per_epoch = per_epoch,
      .each_epoch = train.drain_each_epoch,
      .checkpoint_every = train.checkpoint_every * (train.checkpoint_unit_epoch ? per_epoch : 1),
      .evaluate_every = train.evaluate_within * (train.evaluate_unit_epoch ? per_epoch : 1)};
}

}  // namespace pipewright
