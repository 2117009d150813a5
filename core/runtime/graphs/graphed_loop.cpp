// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/graphs/graphed_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/as_size.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Of any stage, at any time.
int most_copies(const Program& program) {
  int most = 1;
  for (const auto& stage : program.versions.stages)
    for (const StageVersions& replica : stage) most = std::max(most, replica.copies);
  return most;
}

}  // namespace

GraphedLoop::GraphedLoop(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                         const RunRequest& request, const PassSamples& samples,
                         Transport& transport, TrafficCount& traffic)
    : program_(program),
      stages_(stages),
      request_(request),
      samples_(samples),
      transport_(transport),
      traffic_(traffic),
      passes_(*request.graphs),
      most_copies_(most_copies(program)) {
  if (!program.loop) {
    passes_.rounds().refuse("the schedule has no loop: it is short, or recorded as a trace");
    return;
  }
  find_boundary();
}

/// Lets rounds begin where the fewest forwards wait for their backwards, behind a flush if there is
/// one.
void GraphedLoop::find_boundary() {
  const Loop& loop = *program_.loop;
  const auto at = [&](std::size_t place) -> const Instruction& {
    const auto& [worker, i] = program_.order[place];
    return program_.workers[as_size(worker)][as_size(i)];
  };
  std::size_t boundary = loop.order.begin;
  int waiting = 0, fewest = 0;
  for (std::size_t place = loop.order.begin; place < loop.order.end; ++place) {
    const Instruction& instruction = at(place);
    if (instruction.action.kind == ActionKind::Forward) ++waiting;
    if (instruction.last_pass) --waiting;
    if (waiting > fewest) continue;
    fewest = waiting;
    boundary = place + 1;
  }
  begin_ = static_cast<std::int64_t>(boundary);
  size_ = static_cast<std::int64_t>(loop.order.size());
  rounds_ = loop.rounds - (boundary == loop.order.begin ? 0 : 1);
  first_ = std::numeric_limits<int>::max();
  for (std::size_t place = loop.order.begin; place < loop.order.end; ++place) {
    const int minibatch =
        at(place).action.minibatch + (place < boundary ? loop.step.minibatches : 0);
    first_ = std::min(first_, minibatch);
    last_ = std::max(last_, minibatch);
  }
}

bool GraphedLoop::is_boundary(std::int64_t position) const {
  const std::int64_t within = position - begin_;
  return rounds_ > 0 && within >= 0 && within <= size_ * rounds_ && within % size_ == 0;
}

/// The first mini-batch from that one on that has another size than the schedule's first.
int GraphedLoop::first_odd(int from) {
  const auto size_of = [&](int minibatch) {
    return request_.batches.share(minibatch, 0, 0).all_samples;
  };
  for (odd_ = std::max(odd_, from); odd_ < program_.minibatches(); ++odd_)
    if (size_of(odd_) != size_of(0)) break;
  return odd_;
}

/// Rounds from that place on that are whole before `end` and in which all mini-batches are of one
/// size.
std::int64_t GraphedLoop::rounds_from(std::int64_t position, std::int64_t end) {
  const std::int64_t whole = (std::min(end, begin_ + size_ * rounds_) - position) / size_;
  if (whole <= 0) return 0;
  const auto round = static_cast<int>((position - begin_) / size_);
  const int step = program_.loop->step.minibatches, first = first_ + round * step,
            last = last_ + round * step, odd = first_odd(first);
  if (odd <= last) return 0;
  return std::min<std::int64_t>(whole, (odd - 1 - last) / step + 1);
}

void GraphedLoop::begin_round(std::int64_t position, std::int64_t end) {
  GraphRounds::Addresses weights;
  for (const auto& stage : stages_) {
    stage->weights().take_turns(most_copies_);
    stage->weights().add_addresses(weights);
  }
  const GraphRounds& rounds = passes_.rounds();
  const RoundKind before = rounds.kind();
  passes_.begin_round(rounds_from(position, end), weights);
  const std::span<double> counts = traffic_.all();
  const RoundKind now = rounds.kind();
  if (now == RoundKind::Recorded && rounds.phase() == 0)
    traffic_before_.assign(counts.begin(), counts.end());
  if (now == RoundKind::Launched && before == RoundKind::Recorded) {
    traffic_of_period_.assign(counts.begin(), counts.end());
    for (std::size_t i = 0; i < counts.size(); ++i) traffic_of_period_[i] -= traffic_before_[i];
    used_.period = rounds.period();
    used_.graphs = passes_.graphs();
  }
  if (before == RoundKind::Launched && now != RoundKind::Launched) take_over(rounds.launched());
}

/// Gives what the stages keep, what is in flight and what is counted the numbers that it has after
/// launched rounds.
void GraphedLoop::take_over(std::int64_t rounds) {
  Action action, later;
  later.minibatch = static_cast<int>(rounds) * program_.loop->step.minibatches;
  for (const auto& stage : stages_) stage->move_on(samples_.id(later) - samples_.id(action));
  transport_.move_on(rounds);
  const std::span<double> counts = traffic_.all();
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += traffic_of_period_[i] * static_cast<double>(rounds / used_.period);
  used_.rounds += rounds;
}

GraphsUsed GraphedLoop::used() const {
  GraphsUsed used = used_;
  used.refusal = passes_.rounds().refusal();
  return used;
}

}  // namespace pipewright
