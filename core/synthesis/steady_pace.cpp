// SPDX-License-Identifier: Apache-2.0
// Let the mini-batches a, …, a + L − 1 be known, let their actions repeat themselves after K
// mini-batches and T seconds, and let no worker do an action of a mini-batch i + R + 1 before one
// of i. Repeat the first K of them for ever. Actions of mini-batches that are at most L − K apart
// stand to each other as in the schedule. Of two that are farther apart, the later one can be moved
// back by whole periods until it is more than R and at most L − K behind the other, if L ≥ 2K + R;
// there it comes later, and so it does where it was.
#include "core/synthesis/steady_pace.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "core/base/as_size.h"
#include "core/synthesis/order_task.h"

namespace pipewright {
namespace {

struct TimedAction {
  std::tuple<int, ActionKind, int, int> what;  ///< worker, kind, stage, micro-batch
  Span span;
};

class MiddleHalf {
 public:
  MiddleHalf(const Schedule& schedule, const Simulation& simulation, int first, int last)
      : minibatches_(as_size(last - first + 1)), rounding_(simulation.makespan * kSumRounding) {
    for (int worker = 0; worker < std::ssize(schedule.workers); ++worker) {
      const auto& actions = schedule.workers[as_size(worker)];
      int latest = 0;
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const Action& action = actions[i];
        latest = std::max(latest, action.minibatch);
        overlap_ = std::max(overlap_, latest - action.minibatch);
        if (action.minibatch < first || action.minibatch > last) continue;
        minibatches_[as_size(action.minibatch - first)].push_back(
            {{worker, action.kind, action.stage, action.microbatch},
             simulation.spans[as_size(worker)][i]});
      }
    }
    for (auto& actions : minibatches_) std::ranges::sort(actions, {}, &TimedAction::what);
  }

  /// The fewest mini-batches after which all repeat themselves; 0: they do not, or too few are
  /// known to tell.
  int period() const {
    const int known = static_cast<int>(minibatches_.size());
    for (int period = 1; 2 * period + overlap_ <= known; ++period)
      if (repeats(as_size(period))) return period;
    return 0;
  }

  /// The seconds after which they repeat themselves.
  double seconds(int period) const { return begin(as_size(period)) - begin(0); }

 private:
  double begin(std::size_t minibatch) const { return minibatches_[minibatch].front().span.begin; }

  bool repeats(std::size_t period) const {
    if (minibatches_.front().empty() || minibatches_[period].empty()) return false;
    const double later = begin(period) - begin(0);
    const auto alike = [&](const TimedAction& a, const TimedAction& b) {
      return a.what == b.what && std::abs(b.span.begin - a.span.begin - later) <= rounding_ &&
             std::abs(b.span.end - a.span.end - later) <= rounding_;
    };
    for (std::size_t i = 0; i + period < minibatches_.size(); ++i)
      if (!std::ranges::equal(minibatches_[i], minibatches_[i + period], alike)) return false;
    return true;
  }

  std::vector<std::vector<TimedAction>> minibatches_;  ///< of the middle half
  double rounding_;                                    ///< s by which equal sums may differ
  int overlap_ = 0;  ///< R: by how many mini-batches a worker goes back in its actions
};

}  // namespace

SteadyPace steady_pace(const Schedule& schedule, const Simulation& simulation) {
  const int count = schedule.shape.minibatches;
  const int first = count / 4, last = 3 * count / 4;
  const MiddleHalf middle(schedule, simulation, first, std::min(last, count - 1));
  const int period = middle.period();
  if (period == 0) return {.seconds = simulation.makespan / count, .repeats = false};
  // Simulation::seconds_per_minibatch() is the same where whole periods fit.
  if (last > first && (last - first) % period == 0)
    return {.seconds = simulation.seconds_per_minibatch(), .repeats = true};
  return {.seconds = middle.seconds(period) / period, .repeats = true};
}

}  // namespace pipewright
