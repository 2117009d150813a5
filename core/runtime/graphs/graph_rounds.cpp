// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/graphs/graph_rounds.h"

#include <utility>

#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostPooled = 64;  ///< rounds in which addresses should have repeated
/// Recordings. Autograd's threads free the last tensors of a backward whenever they come to it,
/// which may be behind the next allocation.
constexpr int kMostAttempts = 16;

}  // namespace

RoundKind GraphRounds::become(RoundKind kind) {
  phase_ = 0;
  if (kind != RoundKind::Pooled) seen_.clear();
  return kind_ = kind;
}

/// The smallest distance at which the last two rounds seen repeat earlier ones; 0: none.
std::int64_t GraphRounds::repetition() const {
  const std::size_t last = seen_.size() - 1;
  for (std::size_t distance = 1; distance < last; ++distance)
    if (seen_[last] == seen_[last - distance] && seen_[last - 1] == seen_[last - 1 - distance])
      return static_cast<std::int64_t>(distance);
  return 0;
}

RoundKind GraphRounds::begin(std::int64_t left, Addresses alive) {
  const bool recorded = kind_ == RoundKind::Recorded || kind_ == RoundKind::Launched;
  if (kind_ == RoundKind::Launched) ++launched_;
  if (recorded && ++phase_ < period_) return kind_;
  if (!refusal_.empty() || left <= 0) return become(RoundKind::Plain);
  if (recorded && (kind_ == RoundKind::Launched || alive == recorded_from_))
    return become(left < period_ ? RoundKind::Plain : RoundKind::Launched);
  if (kind_ == RoundKind::Recorded) {
    recorded_from_ = std::move(alive);
    if (++attempts_ < kMostAttempts)
      return become(left < 2 * period_ ? RoundKind::Plain : RoundKind::Recorded);
    refuse(concat("what is alive lay elsewhere after each of ", kMostAttempts, " recordings"));
    return become(RoundKind::Plain);
  }
  if (kind_ != RoundKind::Pooled) seen_.clear();
  seen_.push_back(alive);
  if (const std::int64_t distance = repetition(); distance > 0 && left >= 2 * distance) {
    period_ = distance;
    launched_ = 0;
    recorded_from_ = std::move(alive);
    return become(RoundKind::Recorded);
  }
  if (seen_.size() < kMostPooled) return become(RoundKind::Pooled);
  refuse(
      concat("what is alive lay elsewhere at the beginning of each of ", kMostPooled, " rounds"));
  return become(RoundKind::Plain);
}

}  // namespace pipewright
